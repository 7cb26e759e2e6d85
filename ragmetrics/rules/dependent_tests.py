"""Tests that share nights: the p value of whichever test a history selects.

A drop rule compares tonight, or tonight with the pending nights before, with one of several
baselines. The tests share most of their nights, so they are strongly correlated, and Bonferroni's
factor counts them as if each were a chance of its own. Here their correlation is known, because it
follows from the nights that they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy import special

from ragmetrics.stats import Numbers


def chance_of_any(p_values: Numbers, links: Sequence[float]) -> Numbers:
    """Upper bound of the chance that any of several correlated tests has a p so small.

        P(any) <= p + sum over links of 2 T(z, sqrt((1 - r) / (1 + r))),   z = -Phi^-1(p)

    T is Owen's function. `links` are the correlations r along a tree that connects the tests. The
    bound holds for any tree, and for any way in which a history selects one of the tests. It is
    at most Bonferroni's, number of tests times p. Assumes normal statistics.
    Sources: Hunter 1976 and Worsley 1982 for the bound; Owen 1956 for T.
    """
    heights = -special.ndtri(np.asarray(p_values, dtype=np.float64))
    slopes = np.sqrt([(1 - link) / (1 + link) for link in links])
    others = 2 * special.owens_t(heights[..., None], slopes).sum(axis=-1)
    found: Numbers = np.minimum(1.0, p_values + others)
    return found


@lru_cache(maxsize=256)
def rule_links(nights: int, before: int, *, fixed: bool = False) -> tuple[float, ...]:
    """The correlations, along the best tree, of the tests that a rule may make on a night.

        pooled_k  the newest k nights with the `before` nights before them,   k = 1 .. nights
        alone_j   tonight with the `before` nights before the newest j + 1,   j = 1 .. nights - 1

    With a `fixed` baseline there is no alone_j. 0 nights before are a limit, which has no error.
    Assumes nights of equal size that differ independently of each other.
    """
    tests = np.zeros((nights if fixed else 2 * nights - 1, nights + before))
    for k in range(1, nights + 1):
        tests[k - 1, :k] = -1 / k
        tests[k - 1, (start := nights if fixed else k) : start + before] = 1 / max(before, 1)
    for j in range(1, len(tests) - nights + 1):
        tests[nights + j - 1, 0] = -1
        tests[nights + j - 1, j + 1 : j + 1 + before] = 1 / max(before, 1)
    tests /= np.linalg.norm(tests, axis=1, keepdims=True)
    return _best_tree(tests @ tests.T)


def _best_tree(correlations: Numbers) -> tuple[float, ...]:
    """The correlations of the tree with the highest ones (Prim 1957)."""
    links, left, nearest = [], np.arange(1, len(correlations)), correlations[0]
    while len(left):
        best = left[nearest[left].argmax()]
        links.append(min(1.0, float(nearest[best])))
        nearest = np.maximum(nearest, correlations[best])
        left = left[left != best]
    return tuple(links)
