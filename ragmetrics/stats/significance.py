"""Levels of confidence and significance, and p values adjusted for multiple testing.

Other packages read these on their way up, so this module imports no numpy or scipy.
"""

from collections.abc import Sequence

CONFIDENCE = 0.95
"""Confidence level of intervals."""
ALPHA = 0.05
"""Significance level of tests."""


def adjust_p_values(p_values: Sequence[float]) -> list[float]:
    """The p values of one family after Benjamini and Hochberg, in their order.

        q_(i) = min over j >= i of p_(j) * m / j, at most 1,   p_(1) <= ... <= p_(m)

    Rejecting those below a level controls the false discovery rate at this level. If all null
    hypotheses are true, the chance of any rejection is at most the level. This holds for tests
    that are independent or positively dependent. No p value: none.
    Source: Benjamini and Hochberg 1995. As `scipy.stats.false_discovery_control`, whose import
    takes most of a second.
    """
    adjusted, least = [0.0] * len(p_values), 1.0
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, place in reversed(list(enumerate(ranked, 1))):
        least = min(least, float(p_values[place]) * len(p_values) / rank)
        adjusted[place] = least
    return adjusted
