"""Counts requests, tokens and failures by metric."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

from ragmetrics.judges.base import Embedded, Reply
from ragmetrics.model import Usage

_NEVER_ANSWERED = (
    "cancelled",
    "expired",
)  # requests of a batch that were neither processed nor charged


@dataclass
class UsageCounter:
    """Requests, tokens and failures; equal requests of several metrics count for the first."""

    requests: int = 0
    answered_from_store: int = 0
    shared: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def add(self, reply: Reply) -> None:
        """Count a reply, and the failed attempts before it."""
        self.requests += not reply.known
        self.answered_from_store += reply.known
        self.fail(reply.failures)
        self.prompt_tokens += reply.prompt_tokens
        self.cached_tokens += reply.cached_tokens
        self.completion_tokens += reply.completion_tokens

    def fail(self, failures: Mapping[str, int]) -> None:
        """Count failed attempts, by kind."""
        self.requests += sum(
            times for kind, times in failures.items() if kind not in _NEVER_ANSWERED
        )
        self.failures.update(failures)

    def add_embedded(self, embedded: Embedded) -> None:
        """Count a text's share of a request for vectors."""
        self.requests += embedded.requests
        self.fail(embedded.failures)
        self.prompt_tokens += embedded.tokens

    def usage(self) -> Usage:
        """The counts as a record."""
        return Usage(
            requests=self.requests,
            answered_from_store=self.answered_from_store,
            shared=self.shared,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            failures=dict(sorted(self.failures.items())),
        )


class UsageCounters(defaultdict[str, UsageCounter]):
    """The counters of one judge by metric."""

    def __init__(self) -> None:
        super().__init__(UsageCounter)

    def usage(self) -> Usage:
        """The sum over all metrics."""
        return reduce(Usage.__add__, (one.usage() for one in self.values()), Usage())
