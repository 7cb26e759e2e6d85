"""The family: what the drop rules of a night take from, and give to, each other."""

from __future__ import annotations

from ragmetrics.config import Rule
from tests.fakes.past import NOISY, a_night, fallen, metric_findings, scores, uneven

OTHER = "context_relevance"
DOUBTFUL = Rule(metric="context_recall", max_drop=0.05)


def rules_on_other(max_drop: float) -> list[Rule]:
    """Nine rules on a metric that fell significantly by 0.1."""
    return [Rule(metric=OTHER, max_drop=max_drop + place / 1_000) for place in range(9)]


def level_of_recall(*others: Rule) -> str:
    """What is said of a doubtful drop, at one false alarm in five nights."""
    tonight = a_night(scores(uneven(0.1)), scores(fallen(0.1), OTHER))
    earlier = a_night(scores([0.5] * 20), scores(NOISY, OTHER), ago=1)
    return metric_findings([DOUBTFUL, *others], tonight, earlier, false_alarms=0.2)[0].level


def test_alone_a_doubtful_drop_may_be_enough() -> None:
    """p is about 0.04, and three comparisons make 0.12 of it."""
    assert level_of_recall() == "breach"


def test_other_breaches_speak_for_a_doubtful_drop() -> None:
    """Benjamini and Hochberg: among nine true ones, one false one is a share of a tenth."""
    assert level_of_recall(*rules_on_other(0.06)) == "breach"


def test_sure_drops_below_their_limits_speak_for_nothing() -> None:
    """They cannot fire; counted, all that fires of this night could be false."""
    assert level_of_recall(*rules_on_other(0.15)) == "suspect"


def test_what_is_not_beyond_its_limit_is_no_evidence() -> None:
    """Its p is 1, however surely it fell."""
    tonight, earlier = a_night(scores(fallen(0.04))), a_night(scores(NOISY), ago=1)
    (found,) = metric_findings([DOUBTFUL], tonight, earlier)
    assert (found.level, found.p_value) == ("ok", 1.0)
