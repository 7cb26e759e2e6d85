"""The `min` of a rule under a budget of false alarms in time."""

from __future__ import annotations

import pytest

from ragmetrics.config import AlertSettings, Rule
from ragmetrics.records import Level, Usage
from tests.fakes.past import Past, a_night, hold_rules, scores

RECALL = "context_recall"
BUDGET = AlertSettings(rules=(Rule(metric=RECALL, min=0.7),), false_alarms="1 per year")


def night(mean: float, ago: int, usage: Usage) -> Past:
    """A night of 200 questions with this mean, judged by requests to a judge or without."""
    past = a_night(scores([mean - 0.1, mean + 0.1] * 100), ago=ago)
    known = {RECALL: {"judge": usage}} if usage.requests else {}
    return Past(past.manifest.model_copy(update={"usage_by_metric": known}), past.scores)


@pytest.mark.parametrize(("requests", "level"), [(0, "breach"), (200, "suspect")])
def test_what_a_judge_may_move_counts_where_verdicts_are_new(requests: int, level: Level) -> None:
    """A mean five errors below its line: an alert by a judge on this machine, which cannot move;
    in the first nights of a remote judge it may be the judge.
    """
    usage = Usage(requests=requests)
    earlier = [night(0.75, ago, usage) for ago in (1, 2, 3)]
    (found,) = (one for one in hold_rules(BUDGET, night(0.655, 0, usage), earlier) if one.is_rule)
    assert found.level == level
