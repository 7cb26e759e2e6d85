"""The lost passages between the two sides of a comparison."""

from __future__ import annotations

from ragmetrics.comparison.sides import ScoredSide
from ragmetrics.config import Settings
from ragmetrics.passages import VERDICTS, Run, try_lost_passages
from ragmetrics.records import LostPassages


def lost_between(
    settings: Settings, a: ScoredSide, b: ScoredSide, *, worse: bool, build: str | None = None
) -> LostPassages | None:
    """What happened to the passages that questions needed, had in A and lost in B.

    Of several runs of B, the newest counts. The corpus and the retriever are asked where B is
    `worse`, or passages are lost significantly; the retriever only for a `build`. None where no
    question with a known needed passage is on both sides.
    """
    asked = settings if build else settings.model_copy(update={"retriever": None})
    return try_lost_passages(
        asked, _runs(b)[-1], _runs(a), build=build, ask=lambda found: worse or found.significant
    )


def _runs(side: ScoredSide) -> list[Run]:
    """The runs of a side, oldest first."""
    judged = VERDICTS in side.scores
    return [
        Run(side.files, ref, judged=judged, build=side.build)
        for ref in sorted(side.runs, key=lambda one: one.date)
    ]
