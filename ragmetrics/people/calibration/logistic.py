"""Logistic regression with a ridge penalty, for few observations and some tens of features.

Newton's method, with sums by einsum: threads of a linear algebra library cost more than they gain
on matrices this small, and their number could change the last digits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ragmetrics.stats import Numbers

_NEAR = 1e-7
"""Largest gradient at the result."""
_TINY = 1e-3
"""Penalty of the intercept, so that it is finite if all observations are of one class."""


def fit_logistic(features: ArrayLike, positive: ArrayLike, penalties: ArrayLike) -> Numbers:
    """Coefficients of a logistic regression, the intercept first.

        minimise  sum_i log(1 + exp(-s_i (b_0 + x_i b))) + sum_j p_j b_j^2 / 2,   s_i = 1 or -1

    `features` has a line per observation and should be standardised; `positive` is 0 or 1;
    `penalties` has a positive number per feature. The problem is convex, so the result is unique.
    One class only: an intercept that is nearly certain. Raises ValueError for shapes that do not
    fit, or a penalty that is not positive.
    Source: Hastie, Tibshirani and Friedman 2009, "The Elements of Statistical Learning", 4.4.
    """
    x, y = np.asarray(features, dtype=np.float64), np.asarray(positive, dtype=np.float64)
    ridge = np.concatenate([[_TINY], np.asarray(penalties, dtype=np.float64)])
    if x.shape != (len(y), len(ridge) - 1) or (ridge <= 0).any():
        raise ValueError(f"features {x.shape}, {len(y)} classes, {len(ridge) - 1} penalties")
    design = np.column_stack([np.ones(len(x)), x])

    def loss(b: Numbers) -> tuple[float, Numbers]:
        z = np.einsum("ni,i->n", design, b)
        value = np.logaddexp(0.0, z).sum() - y @ z + 0.5 * ridge @ np.square(b)
        return float(value), np.einsum("ni,n->i", design, special.expit(z) - y) + ridge * b

    def curvature(b: Numbers) -> Numbers:
        chance = special.expit(np.einsum("ni,i->n", design, b))
        weighed = design * (chance * (1 - chance))[:, None]
        return np.asarray(np.einsum("ni,nj->ij", weighed, design) + np.diag(ridge))

    from scipy import optimize  # a third of a second, which a flow without learned judge saves

    start = np.zeros(design.shape[1])
    found = optimize.minimize(
        loss, start, jac=True, hess=curvature, method="trust-exact", options={"gtol": _NEAR}
    )
    return np.asarray(found.x, dtype=np.float64)
