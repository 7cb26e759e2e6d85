"""Slow decline: a level that sinks over weeks, by so little a night that no night stands out.

    night_levels:  m_tc = level_t + effect_c + noise,   for cell c of night t with n_tc questions
    find_decline:  level_t = weekday + change_k * shape_k(t) + noise_t

A cell is the questions with one value of a tag, so the level is that of one mix of questions. The
error of the change comes from the nights themselves: it includes the spread of the questions and
the movement of the judge, which all questions of a night share.

Leading dimensions of the arrays are independent series: simulations pass many years at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragmetrics.stats import Numbers

STEPS = (7, 14, 21, 28, 42)
"""Shapes that are 1 on the last k days, and 0 before."""
RAMPS = (21, 30, 45, 60)
"""Shapes that rise from 0 to 1 over the last k days."""
FEWEST_NIGHTS = 42
_FEWEST_OF_A_CELL = 10
"""Fewest questions of a cell in the first nights for an effect of its own: as of a stratum."""
FEWEST_BEFORE = 14
"""Fewest nights before the fall."""
_WEEK = 7
_MOST_LAG = 0.9
_TINY = 1e-12


@dataclass(frozen=True)
class Decline:
    """The most significant fall of a level; one value for each series."""

    p_value: Numbers
    """One-sided p of the best shape alone, as if it were the only one."""
    before: Numbers
    """Mean level without the fall."""
    fall: Numbers
    error: Numbers
    """Standard error of the fall."""
    days: NDArray[np.intp]
    """Days of the fall for a ramp, and since the fall for a step."""
    is_ramp: NDArray[np.bool_]
    freedom: int
    """Degrees of freedom of the error."""


def night_levels(questions: Numbers, means: Numbers, early: int) -> Numbers:
    """The level of each night for one mix of cells.

        minimise sum_tc n_tc (m_tc - level_t - effect_c)^2,   sum_tc n_tc effect_c = 0

    Shapes: (..., nights, cells) to (..., nights). Each night needs a question; the mean of a cell
    without questions is ignored. A cell with less than ten questions in the first `early` nights is
    new: it has no effect of its own, so its rows are compared with all rows.
    Source: Yates 1933, "The principles of orthogonality and confounding in replicated experiments".
    """
    known = questions[..., :early, :].sum(axis=-2, keepdims=True) >= _FEWEST_OF_A_CELL
    counted = np.where(known, questions, 0.0)
    effects = _effects(counted, np.where(questions > 0, means, 0.0))
    sums = np.where(questions > 0, questions * means, 0.0) - counted * effects[..., None, :]
    levels: Numbers = sums.sum(axis=-1) / questions.sum(axis=-1)
    return levels


def _effects(questions: Numbers, means: Numbers) -> Numbers:
    """The effect of each cell, by least squares with a level per night; 0 for an empty cell."""
    own, nightly = questions.sum(axis=-2), questions.sum(axis=-1, keepdims=True)
    share = questions / np.maximum(nightly, _TINY)
    night = (share * means).sum(axis=-1, keepdims=True)
    matrix = np.eye(own.shape[-1]) * own[..., None] - np.swapaxes(questions, -1, -2) @ share
    right = (questions * (means - night)).sum(axis=-2)
    found = (np.linalg.pinv(matrix, hermitian=True) @ right[..., None])[..., 0]
    total = np.maximum(own.sum(axis=-1, keepdims=True), _TINY)
    return np.where(own > 0, found - (found * own).sum(axis=-1, keepdims=True) / total, 0.0)


def find_decline(levels: Numbers, days: NDArray[np.intp], weights: Numbers) -> Decline | None:
    """The shape of a fall that explains the levels best, by least squares.

        t_k = -change_k / error_k        error_k^2 = left^2 / freedom * (1 + r) / (1 - r) / size_k

    `levels` are of shape (..., nights), oldest first. `days` numbers the nights' days, so a missing
    night is a gap; `weights` says how much each night counts. r is the autocorrelation of
    successive residuals, from 0 to 0.9. A shape needs 14 nights before its fall.
    None: less than 42 nights, or no shape with enough nights before.
    Sources: Hinkley 1970 for the maximum over change points; Bartlett 1946 for r.
    """
    shapes = _shapes(days)
    if len(days) < FEWEST_NIGHTS or not shapes:
        return None
    root = np.sqrt(weights / weights.mean())
    weekdays = days % _WEEK
    dummies = np.stack([weekdays == day for day in np.unique(weekdays)], axis=1) * root[:, None]
    basis, _ = np.linalg.qr(dummies)
    rest = levels * root - (levels * root) @ basis @ basis.T
    freedom = len(days) - basis.shape[1] - 1
    fits = np.stack([_fit(rest, shape * root, basis, freedom) for _, _, shape in shapes])
    best = (fits[:, 0] / fits[:, 1]).argmax(axis=0)
    fall, error = np.take_along_axis(fits, best[None, None], axis=0)[0]
    chosen = np.array([shape for _, _, shape in shapes])[best]
    before = ((levels + fall[..., None] * chosen) * weights).sum(axis=-1) / weights.sum()
    return Decline(
        p_value=special.stdtr(freedom, -fall / error),
        before=before,
        fall=fall,
        error=error,
        days=np.array([days for days, _, _ in shapes], dtype=np.intp)[best],
        is_ramp=np.array([ramp for _, ramp, _ in shapes])[best],
        freedom=freedom,
    )


def _shapes(days: NDArray[np.intp]) -> list[tuple[int, bool, Numbers]]:
    """The usable shapes, with their days and whether they are ramps."""
    ago = days[-1] - days if len(days) else days
    steps = [(k, False, (ago < k).astype(np.float64)) for k in STEPS]
    ramps = [(k, True, np.clip((k - ago) / k, 0.0, 1.0)) for k in RAMPS]
    return [step for step in (*steps, *ramps) if (step[2] == 0).sum() >= FEWEST_BEFORE]


def _fit(rest: Numbers, shape: Numbers, basis: Numbers, freedom: int) -> Numbers:
    """The fall by one shape, and its standard error; `rest` and the result have no weekday."""
    own = shape - basis @ (basis.T @ shape)
    size = float(own @ own)
    change = rest @ own / size
    left = rest - change[..., None] * own
    squares = np.maximum((left**2).sum(axis=-1), _TINY**2)
    lag = np.clip((left[..., 1:] * left[..., :-1]).sum(axis=-1) / squares, 0.0, _MOST_LAG)
    error = np.sqrt(squares / freedom * (1 + lag) / (1 - lag) / size)
    return np.stack([-change, np.maximum(error, _TINY)])
