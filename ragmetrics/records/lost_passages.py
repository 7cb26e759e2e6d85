"""Lost passages: passages that a question needs, that it retrieved before and does not retrieve
now, and the stage at which each was lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Literal

from pydantic import Field

from ragmetrics.records.base import Record
from ragmetrics.records.score import Segment

Stage = Literal[
    "below_cut",
    "filtered",
    "in_index",
    "rechunked",
    "renamed",
    "edited",
    "not_in_index",
    "not_in_corpus",
    "undecided",
]
STAGES: Mapping[Stage, str] = {
    "not_in_corpus": "not in the corpus any more",
    "not_in_index": "gone from the index",
    "edited": "source edited",
    "rechunked": "re-chunked",
    "renamed": "under another id",
    "filtered": "filtered out",
    "below_cut": "ranked below the cut",
    "in_index": "still in the index: ranked below the cut or filtered out",
    "undecided": "undecided",
}
"""The stages in words, in the order of a passage's way from its source to a question."""
_GONE: tuple[Stage, ...] = ("not_in_corpus", "not_in_index")
MOST_LISTED = 100
"""Lost passages that are stored one by one; the others are counted."""


class LostPassage(Record):
    """A passage that a question needs, that it retrieved before and does not retrieve now."""

    stage: Stage
    proven: bool = False
    """Whether the evidence proves the stage; otherwise it makes the stage probable."""
    evidence: str
    id: str = ""
    """The document id; empty where the log has none."""
    text: str = ""
    """Its text as last retrieved, shortened."""
    user_input: str = ""
    question: str = ""
    """Key of the question."""
    night: date | None = None
    """The night on which the question last retrieved it."""
    rank: int | None = None
    """Its rank then, from 1."""
    hop: int | None = None
    """The hop of its trace that had retrieved it; None for a single retrieval."""
    asked: date | None = None
    """The newest night that asked the question, where it was not asked tonight."""
    shard: int | None = None
    position: int | None = None
    """Location of the question's row tonight."""


class StageShare(Record):
    """The share of questions that lost a passage at a stage: of all, or of one segment."""

    stage: Stage
    passages: int
    questions: int
    """Questions that lost at least one passage at this stage."""
    of: int
    """Questions with a known needed passage."""
    share: float
    low: float
    high: float
    usual: float | None = None
    """The share of the nights before; None: not known."""
    p_value: float | None = None
    """One-sided p value against the nights before, adjusted over all stages and segments."""
    significant: bool = False
    segment: Segment | None = None


class StageCounts(Record):
    """Questions that lost a passage, by the stage that the logs alone say; later nights are
    compared with these counts.
    """

    of: int = 0
    stages: dict[Stage, int] = Field(default_factory=dict)
    segments: dict[str, dict[str, StageCounts]] = Field(default_factory=dict)
    """The same by tag and value."""


class LostPassages(Record):
    """What happened to the passages that questions lost."""

    questions: int
    """Questions with a known needed passage."""
    earlier_runs: int = 0
    """Runs before in which these questions were looked for; 0 in older records."""
    needed: int
    """Their needed passages that they retrieved before."""
    fallen: int
    """Questions that lost at least one of them."""
    carried: int = 0
    """Of these, questions that were not asked tonight: an earlier night lost the passage."""
    lost: int
    stages: list[StageShare] = Field(default_factory=list)
    segments: list[StageShare] = Field(default_factory=list)
    """Stages by tag, where a value stands out."""
    hops: dict[int, int] = Field(default_factory=dict)
    """Lost passages by the hop of their trace that had retrieved them."""
    sentence: str = ""
    """What happened, in one sentence; empty where no stage is significant."""
    edited: str = ""
    """Golden passages that are retrieved as before with another text, in one sentence."""
    passages: list[LostPassage] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    """What was not asked or not answered, and what would decide undecided passages."""
    requests: int = 0
    """Requests to the retriever."""
    counts: StageCounts = StageCounts()
    significant_by_logs: bool = False
    """Whether the logs alone show a significant stage, whatever corpus and retriever say."""

    @property
    def significant(self) -> bool:
        """Whether some stage lost significantly more passages than on the nights before."""
        return any(stage.significant for stage in self.stages)

    @property
    def stages_gone(self) -> list[StageShare]:
        """The significant stages at which passages left the index, or the corpus and so the index.

        A gate holds a build for each of them.
        """
        return [stage for stage in self.stages if stage.significant and stage.stage in _GONE]


def stage_words(stage: Stage, *, proven: bool) -> str:
    """`probably gone from the index`: the stage, and how sure it is."""
    words = STAGES[stage]
    return words if proven or stage in ("undecided", "in_index") else f"probably {words}"


def enumerated(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
