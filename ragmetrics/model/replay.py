"""What a replay came to: the record that is returned, printed and kept beside its log."""

from __future__ import annotations

from pydantic import Field

from ragmetrics.errors import RetrieverError
from ragmetrics.model.manifest import Record

STATE_VERSION = 1


class Replayed(Record):
    """The golden questions, asked of one index build."""

    build: str
    place: str
    """The address of the log."""
    questions: int
    """Distinct questions of the golden set, or of the part of it that was to be asked."""
    rows: int
    """Rows of the log: questions that were answered."""
    empty: int = 0
    """Rows without contexts: nothing was found."""
    failed: dict[str, int] = Field(default_factory=dict)
    """Questions without an answer, by reason; they have no row."""
    examples: dict[str, str] = Field(default_factory=dict)
    """By reason, what was said of the first, on one line and cut to size."""
    asked: int = 0
    """Questions that this run asked,"""
    found: int = 0
    """and those that were answered before."""
    setbacks: dict[str, int] = Field(default_factory=dict)
    """Attempts that came to nothing, by reason; most were made again."""
    unreadable: int = 0
    """Rows of the golden set that hold no question."""
    seconds: float = 0.0

    @property
    def told_failures(self) -> str:
        """As `3 timeout, 1 rejected (the retriever answered 400: ...)`."""
        return ", ".join(
            f"{count:,} {reason} ({self.examples[reason]})" for reason, count in self.failed.items()
        )


class ReplayShort(RetrieverError):
    """Too many questions have no answer: there is no log. The same command asks them again."""

    def __init__(self, replayed: Replayed, most: float) -> None:
        self.replayed, self.most = replayed, most
        super().__init__(
            f"replay of build {replayed.build}: {sum(replayed.failed.values()):,} of "
            f"{replayed.questions:,} questions have no answer, and `retriever: max_failed:` is "
            f"{most:g}: {replayed.told_failures}; no log is written, and the same command goes on "
            "with those that are missing",
            transient=True,
        )

    def __reduce__(self) -> tuple[type[ReplayShort], tuple[Replayed, float]]:
        return type(self), (self.replayed, self.most)  # by default it is pickled by its text alone


class ReplayState(Record):
    """How far the replay of a log is; kept beside it."""

    version: int = STATE_VERSION
    digest: str
    """Of all that its rows depend on: build, questions, and how the retriever is asked."""
    replayed: Replayed | None = None
    """None: it is under way, or was when it ended."""
