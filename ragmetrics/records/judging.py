"""What a night knows of its judges without labels: who they are, what their requests cost, their
answers to obvious questions, and how often they gave which verdict.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field

from ragmetrics.records.base import Record

EMBEDDINGS = "embeddings"
"""Name of the embeddings in the usage, beside the names of judges."""
CANARIES = 10
"""Canaries that a judge is asked: five obvious yeses, five obvious noes."""
LEAST_RIGHT = 8
"""Right answers from which a judge passes: by tossing a coin it gets as many in 5% of the nights,
and with one answer to all of them never."""
_FORMER = re.compile(r"(?<![^\s])embedded(?![^\s,:])")
_CURRENT = re.compile(r"(?<![^\s])lexical(?![^\s,:])")


def current_judge_name(name: object) -> object:
    """The name of a judge or of a panel, in which the lexical judge may have its former name."""
    return _FORMER.sub("lexical", name) if isinstance(name, str) else name


def former_judge_name(name: str) -> str:
    """The name by which alerts know a judge: one that fires must stay the same alert."""
    return _CURRENT.sub("embedded", name)


def with_current_judges(settings: object) -> object:
    """The stored settings of a night, in which judges have the names that they have now."""
    if not isinstance(settings, Mapping):
        return settings
    named = settings.keys() & {"judge", "judges", "sample"}
    return {**settings, **{key: _renamed(settings[key]) for key in named}}


def _renamed(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _renamed(inner) for key, inner in value.items()}
    return (
        [_renamed(inner) for inner in value]
        if isinstance(value, list)
        else current_judge_name(value)
    )


JudgeName = Annotated[str, BeforeValidator(current_judge_name)]
"""The name of a judge in a record, of any version."""


def fingerprint(*parts: object) -> str:
    """A short digest of the parts that identify a judge or a metric."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=6).hexdigest()


class JudgeInfo(Record):
    """The judge, or panel of judges, that gave the verdicts."""

    name: JudgeName
    fingerprint: str
    note: JudgeName = ""
    """Note shown with the judge's numbers, such as that it is a baseline and not an LLM."""
    panel: list[JudgeName] = Field(default_factory=list)
    """Names of the panel's judges; empty for a single judge."""
    also: JudgeInfo | None = None
    """The judge under `also`, which scores what this one cannot; None: there is none."""
    metrics: list[str] = Field(default_factory=list)
    """Of a judge under `also`: the metrics that it scores."""

    def of(self, metric: str) -> JudgeInfo:
        """The judge, or panel, that scores a metric."""
        return self.also if self.also and metric in self.also.metrics else self

    @property
    def each(self) -> list[JudgeInfo]:
        """The judge, or panel, and the judge under `also`."""
        return [self, self.also] if self.also else [self]

    @property
    def title(self) -> str:
        """Its name; with a judge under `also` that one's name and metrics too."""
        if self.also is None:
            return self.name
        return f"{self.name}, and {self.also.name} for {', '.join(self.also.metrics) or 'nothing'}"

    @property
    def identity(self) -> str:
        """What tells runs apart: its fingerprint, and that of a judge under `also`."""
        return f"{self.fingerprint}+{self.also.fingerprint}" if self.also else self.fingerprint


class AskedWay(Record):
    """How an endpoint was asked otherwise than planned, where that can change a reply."""

    way: str
    """Such as `reasoning_effort low, no temperature`; empty: as planned."""
    parameters: dict[str, str | float] = Field(default_factory=dict)
    """The parameters of the last request that the model may not take, where it was asked for
    another way or more room; the value of the limit is the room for reasoning."""


class SpendLimits(Record):
    """Limits on requests, tokens and cost; None: no limit."""

    max_requests: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None


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
    reasoning_tokens: int = 0
    """Completion tokens that a model used to reason before it replied."""
    hedged: int = 0
    """Requests that were sent a second time because they took long; they count as requests."""
    certain: int = 0
    """Verdicts of an earlier judge of a cascade that it was certain of."""
    escalated: int = 0
    """Verdicts that an earlier judge of a cascade left to the next judge."""
    unknown_requests: int = 0
    """Requests whose tokens nobody says: their answers were lost, late or cancelled, or had no
    count. Their tokens are estimated, and part of all sums."""
    unknown_prompt_tokens: int = 0
    """Estimated part of `prompt_tokens`."""
    unknown_completion_tokens: int = 0
    """Estimated part of `completion_tokens`."""
    unknown_usd: float | None = None
    """Estimated part of `usd`. None where nothing is estimated, or the price is not known."""
    usd: float | None = None
    """None where the model's price is not known."""
    usd_saved: float | None = None
    """How much less the cached tokens cost than other prompt tokens. None where nothing was cached,
    or no price of cached tokens is set."""
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
        saved = [one.usd_saved for one in (self, other) if one.usd_saved is not None]
        lost = [one.unknown_usd for one in (self, other) if one.unknown_usd is not None]
        counts = {
            name: getattr(self, name) + getattr(other, name)
            for name, field in Usage.model_fields.items()
            if field.annotation is int
        }
        return Usage(
            **counts,
            unknown_usd=round(sum(lost), 6) if lost else None,
            usd=round(sum(known), 6) if known and len(known) == len(spent) else None,
            usd_saved=round(sum(saved), 6) if saved else None,
            failures=dict(sorted(failures.items())),
        )


class CanaryReport(Record):
    """What a judge said of ten contexts: five answer their question, five are about something
    else."""

    language: str
    asked: int
    """Those to which it replied, with or without a verdict."""
    right: int
    """Those that it graded right: at least 1 where the context answers, less where it does not."""
    yes: int
    """Those that it graded at least 1; right are five."""
    problem: str = ""
    """Why it gave no verdict on some; empty if it gave all."""

    def fails(self, least: float) -> bool:
        """Whether it cannot get `least` of ten right any more, whatever it would have said to those
        without a reply.
        """
        return self.asked - self.right > CANARIES - least

    @property
    def text(self) -> str:
        """`5 of 10 obvious questions right (yes to 10)`."""
        why = f"; {self.problem}" if self.problem else ""
        return f"{self.right} of {self.asked} obvious questions right (yes to {self.yes}){why}"


class VerdictCount(Record):
    """The verdicts of a judge on a prompt in a night. Shared requests count once."""

    top: int | None = None
    """The highest level of a verdict; None: its verdicts have no levels."""
    levels: dict[int, int] = Field(default_factory=dict)
    """How often each level was given: to a context, a statement or a sentence."""
    replies: int = 0
    copied: int = 0
    """Replies with a text of an example of the prompt."""

    def __add__(self, other: VerdictCount) -> VerdictCount:
        """The sum of both."""
        levels = Counter(self.levels) + Counter(other.levels)
        return VerdictCount(
            top=other.top if self.top is None else self.top,
            levels=dict(sorted(levels.items())),
            replies=self.replies + other.replies,
            copied=self.copied + other.copied,
        )

    @property
    def usual(self) -> tuple[int, float]:
        """The most frequent level and its share; (0, 0.0) without verdicts."""
        if not self.levels:
            return 0, 0.0
        level = max(self.levels, key=lambda one: self.levels[one])
        return level, self.levels[level] / self.verdicts

    @property
    def verdicts(self) -> int:
        """Number of verdicts with a level."""
        return sum(self.levels.values())
