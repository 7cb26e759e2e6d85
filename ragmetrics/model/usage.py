"""Requests to judges and embeddings, and their cost."""

from __future__ import annotations

from collections import Counter

from pydantic import Field

from ragmetrics.model.base import Record


class Usage(Record):
    """Requests to one or several judges, with tokens and cost."""

    requests: int = 0
    answered_from_store: int = 0
    shared: int = 0
    """Requests answered by an equal request of the same run."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the endpoint had in its cache."""
    completion_tokens: int = 0
    usd: float | None = None
    """None where the model's price is not known."""
    failures: dict[str, int] = Field(default_factory=dict)
    """Failed calls and unusable replies, by kind; most were retried."""

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        """The sum of both. The cost is known where it is known for both."""
        failures = Counter(self.failures) + Counter(other.failures)
        paid = [one for one in (self, other) if one.tokens]
        spent = [one.usd for one in (self, other) if one in paid or one.usd is not None]
        known = [usd for usd in spent if usd is not None]
        return Usage(
            requests=self.requests + other.requests,
            answered_from_store=self.answered_from_store + other.answered_from_store,
            shared=self.shared + other.shared,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            usd=round(sum(known), 6) if known and len(known) == len(spent) else None,
            failures=dict(sorted(failures.items())),
        )
