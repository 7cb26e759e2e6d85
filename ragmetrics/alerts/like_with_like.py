"""The drop from a baseline to some nights, as every drop rule measures it."""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.alerts.context import Baseline, NightContext
from ragmetrics.alerts.judge_movement import level_between
from ragmetrics.alerts.question_mix import RowSelection, without_mix
from ragmetrics.stats import Drop, QuestionValues, compare_nights, with_movement


def drop_between(
    night: NightContext,
    which: RowSelection,
    baseline: Baseline,
    before: Sequence[QuestionValues],
    now: Sequence[QuestionValues],
) -> Drop | None:
    """The drop from the baseline to tonight, or to the last nights of the incident with tonight.

    `before` and `now` are the scores of those nights. The drop is paired by question where enough
    questions recur, else adjusted to the same mix of tags. Its error includes the judge's movement
    from night to night. None where there are less than two questions to compare.
    """
    nights = [*baseline.spell, night.manifest][-len(now) :]
    drop = without_mix(compare_nights(before, now), night, which, baseline, nights)
    if drop is None:
        return None
    return with_movement(drop, level_between(night, which.metric, baseline.nights, nights))
