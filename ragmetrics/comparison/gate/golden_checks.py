"""The golden set of a gate: whether it is readable, and how many questions the builds have."""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.comparison.gate.question_scores import SideScores
from ragmetrics.comparison.gate.staging import BuildSide
from ragmetrics.config import Settings
from ragmetrics.logs import GoldenSet, golden_set

Scored = tuple[BuildSide, SideScores]
"""One of the two builds, and its scores."""


def read_golden(settings: Settings) -> GoldenSet:
    """The golden set of the settings; an empty one where they name none.

    Raises InputError where there is no such file, StoreError where a bucket does not answer.
    """
    return GoldenSet(golden_set(settings))


def obstacles_of(settings: Settings, golden: GoldenSet, sides: Sequence[Scored]) -> list[str]:
    """Reasons in the golden set against a promotion, whatever the numbers are."""
    if settings.golden is None:
        return []
    if not golden.questions:
        return [f"golden set {settings.golden}: no question can be read in it"]
    return [
        *_unread(golden, settings.gate.max_missing),
        *(
            f"golden set {settings.golden}: build {side.build} has no row of any question in it"
            for side, scores in sides
            if not _asked(golden, side, scores)
        ),
    ]


def never_asked(golden: GoldenSet, before: BuildSide, scores: SideScores) -> list[str]:
    """A note on golden questions without a row of the serving build, where it has any row."""
    asked, total = _asked(golden, before, scores), len(golden.questions)
    if asked in (0, total):
        return []
    return [
        f"{total - asked:,} of {total:,} golden questions have no row of build {before.build} and "
        "are not compared"
    ]


def _unread(golden: GoldenSet, most: float) -> list[str]:
    cut = [bad for bad in golden.rejected if bad.whole_file]
    broken = len(golden.rejected) - len(cut)
    rows = broken + len(golden.questions)
    found = [f"{bad.file} is read in part: {bad.reason}" for bad in cut]
    if broken > most * rows:
        found.append(f"{broken:,} of {rows:,} rows of the golden set could not be read")
    return found


def _asked(golden: GoldenSet, side: BuildSide, scores: SideScores) -> int:
    """Number of golden questions that a build has rows of."""
    if side.staged:
        return side.staged.source.golden_questions
    nights = {question for one in scores.answers.values() for question in one.states}
    return len(golden.questions & nights)
