"""Result of a replay: the record that is returned, printed and stored beside its log."""

from __future__ import annotations

from pydantic import Field

from ragmetrics.errors import RetrieverError
from ragmetrics.records.base import Record

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
