"""Levels of confidence and significance, and p values adjusted for multiple testing.

Other packages read these on their way up, so this module imports no numpy or scipy.
"""

from collections.abc import Sequence
from typing import TypeVar

P = TypeVar("P", float, float | None)

CONFIDENCE = 0.95
"""Confidence level of intervals."""
ALPHA = 0.05
"""Significance level of tests."""


def adjust_p_values(p_values: Sequence[P]) -> list[P]:
    """The p values of one family after Benjamini and Hochberg, in their order.

        q_(i) = min over j >= i of p_(j) * m / j, at most 1,   p_(1) <= ... <= p_(m)

    Rejecting those below a level controls the false discovery rate at this level. If all null
    hypotheses are true, the chance of any rejection is at most the level. This holds for tests
    that are independent or positively dependent. None is no test, and stays None.
    Source: Benjamini and Hochberg 1995. As `scipy.stats.false_discovery_control`, whose import
    takes most of a second.
    """
    adjusted, least = list(p_values), 1.0
    ranked = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    for rank, (p, place) in reversed(list(enumerate(ranked, 1))):
        adjusted[place] = least = min(least, float(p) * len(ranked) / rank)
    return adjusted
