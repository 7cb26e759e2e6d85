"""Records of replays, and of a what-if: which variant of the retriever fixes what fell."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from pydantic import Field, JsonValue

from ragmetrics.errors import RetrieverError
from ragmetrics.records.base import Record
from ragmetrics.records.judging import JudgeInfo, Usage

AS_NOW = "as now"
"""The variant with the parameters of production."""


class VariantChange(Record):
    """The change of one metric from `as now` to a variant, question by question."""

    metric: str
    questions: int
    difference: float | None = None
    """The variant minus `as now`; None with less than two scored questions."""
    low: float | None = None
    high: float | None = None
    higher_is_better: bool | None = True

    @property
    def clear(self) -> bool:
        """Whether the interval excludes no change."""
        return self.low is not None and self.high is not None and self.low * self.high > 0


class VariantResult(Record):
    """What a variant does to the questions that fell, and to the others."""

    name: str
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    asked: int = 0
    """Questions that fell. One without an answer is not fixed."""
    mended: int = 0
    """Those of them whose needed passages are all returned."""
    share: float | None = None
    """Share of fixed questions."""
    low: float | None = None
    high: float | None = None
    others: int = 0
    """Questions that did not fall and have an answer."""
    broken: int = 0
    """Those of them that no longer get a passage that they need."""
    contexts: float | None = None
    """Mean number of contexts of all answers."""
    fell: list[VariantChange] = Field(default_factory=list)
    """Changes over the questions that fell."""
    kept: list[VariantChange] = Field(default_factory=list)
    """Changes over the others."""
    failed: int = 0
    """Questions without an answer."""
    reason: str = ""
    """The first reason."""


class WhatIf(Record):
    """What would fix the questions that fell on a night: the output of `ragmetrics whatif`."""

    dataset: str
    night: date
    run: str
    build: str
    fallen: int
    """Questions that lost a passage on the night."""
    variants: list[VariantResult]
    """`as now` first, then those that fix most."""
    judge: JudgeInfo
    usage: Usage = Usage()
    requests: int = 0
    """Requests to the retriever."""
    at: datetime
    problems: list[str] = Field(default_factory=list)

    @property
    def best(self) -> VariantResult | None:
        """The variant that fixes most questions; None where none fixes more than `as now`."""
        now, *others = self.variants
        better = [other for other in others if other.mended > now.mended]
        return better[0] if better else None

    def as_json(self) -> dict[str, Any]:
        """The output of `ragmetrics whatif --json`."""
        return self.model_dump(mode="json")


def whatif_sentence(whatif: WhatIf) -> str:
    """`k=10 fixes 9 of 11 questions that fell (82% [52%, 95%]); of 11 others it breaks 0`."""
    best, now = whatif.best, whatif.variants[0]
    if best is None:
        return (
            f"no variant fixes more of the {now.asked:,} questions that fell than `{AS_NOW}`, "
            f"which fixes {now.mended:,}"
        )
    share = f"{best.share or 0:.0%} [{best.low or 0:.0%}, {best.high or 0:.0%}]"
    text = f"{best.name} fixes {best.mended:,} of {best.asked:,} questions that fell ({share})"
    text += f", `{AS_NOW}` {now.mended:,}" if now.mended else ""
    return f"{text}; of {best.others:,} others it breaks {best.broken:,}{_cost(best)}"


def _cost(best: VariantResult) -> str:
    """What the variant costs the other questions, in the metric with the largest loss."""
    known = [one for one in best.kept if one.difference is not None and one.clear]
    worst = min(known, key=_gain, default=None)
    if worst is None or _gain(worst) >= 0:
        return ""
    ends = f"[{worst.low or 0:+.3f}, {worst.high or 0:+.3f}]"
    return f", and changes their {worst.metric} by {worst.difference or 0:+.3f} {ends}"


def _gain(change: VariantChange) -> float:
    """How much better the metric is."""
    return (change.difference or 0.0) * (1 if change.higher_is_better else -1)


STATE_VERSION = 1


class ReplayReport(Record):
    """Result of asking one index build the golden questions."""

    build: str
    place: str
    """The address of the log."""
    questions: int
    """Distinct questions of the golden set, or of the requested part of it."""
    rows: int
    """Rows of the log: answered questions."""
    empty: int = 0
    """Rows without contexts."""
    failed: dict[str, int] = Field(default_factory=dict)
    """Questions without an answer, by reason; they have no row."""
    examples: dict[str, str] = Field(default_factory=dict)
    """The first error message of each reason, shortened to one line."""
    asked: int = 0
    """Questions that this run asked."""
    found: int = 0
    """Questions that an earlier run had answered."""
    setbacks: dict[str, int] = Field(default_factory=dict)
    """Failed attempts by reason; most were retried."""
    unreadable: int = 0
    """Rows of the golden set that have no question."""
    seconds: float = 0.0

    @property
    def failure_text(self) -> str:
        """`3 timeout (...), 1 rejected (the retriever answered 400: ...)`."""
        return ", ".join(
            f"{count:,} {reason} ({self.examples[reason]})" for reason, count in self.failed.items()
        )


class ReplayIncomplete(RetrieverError):
    """Too many questions have no answer, so no log is written. The same command retries them."""

    def __init__(self, replayed: ReplayReport, most: float) -> None:
        self.replayed, self.most = replayed, most
        super().__init__(
            f"replay of build {replayed.build}: {sum(replayed.failed.values()):,} of "
            f"{replayed.questions:,} questions have no answer, and `retriever: max_failed:` is "
            f"{most:g}: {replayed.failure_text}; no log is written, and the same command continues "
            "with the missing questions",
            transient=True,
        )

    def __reduce__(self) -> tuple[type[ReplayIncomplete], tuple[ReplayReport, float]]:
        return type(self), (self.replayed, self.most)  # the default pickles the text alone


class ReplayState(Record):
    """Progress of a replay, stored beside its log."""

    version: int = STATE_VERSION
    digest: str
    """Digest of build, questions and request settings, on which the rows depend."""
    replayed: ReplayReport | None = None
    """The result; None: the replay runs or was interrupted."""
