"""Scores: the result of one metric on one row, and its possible statuses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from numbers import Real
from typing import Any

from ragmetrics.errors import Unanswered
from ragmetrics.text import shorten

_SCALARS = ("numpy", "torch")
"""Packages whose scalars are numbers."""


def real_number(value: object) -> float:
    """A value as a float: a Python number, a Decimal, or a scalar of numpy or torch.

    Raises ValueError for anything else, also for a text, and for a number that is not finite.
    """
    if type(value) is float and math.isfinite(value):  # nearly all are
        return value
    if type(value).__module__ in _SCALARS and getattr(value, "shape", None) == ():
        value = value.item()  # type: ignore[attr-defined]  # a scalar or an array without axes
    if not isinstance(value, Real | Decimal):
        raise ValueError(f"a score of type {type(value).__name__}, which is no number")
    try:
        number = float(value)
    except (OverflowError, ValueError):  # a whole number beyond floats; a signalling NaN
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"a score of {shorten(str(value))}: a missing value is a status")
    return number


class Status(StrEnum):
    """Why a row has a value, or has none."""

    SCORED = "scored"
    NOT_APPLICABLE = "not_applicable"
    UNREADABLE = "unreadable"
    REFUSED = "refused"
    JUDGE_FAILED = "judge_failed"
    METRIC_FAILED = "metric_failed"
    OVER_BUDGET = "over_budget"
    NOT_SAMPLED = "not_sampled"


UNSETTLED = (Status.UNREADABLE, Status.REFUSED, Status.JUDGE_FAILED, Status.METRIC_FAILED)
"""Statuses of rows that should have a value but have none: a later attempt may give one."""


@dataclass(frozen=True, slots=True)
class Score:
    """One row's value of one metric, or the reason why it has none."""

    value: float | None
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    status: Status = Status.SCORED
    votes: tuple[float | None, ...] | None = None
    """The values of a panel's judges, in the order of the panel."""
    failed: tuple[str, ...] = ()
    """The judges of a panel that gave no usable verdict."""
    spread: float | None = None
    """Standard deviation over a judge's repeats."""
    cheap: float | None = None
    """The cheap judge's value, on a sampled night."""
    probability: float | None = None
    """Inclusion probability of a judged row, if active sampling is set."""
    compared: bool = True
    """False for a judged row that comparisons of nights leave out: outside the uniform part of a
    sample, as they give each row the same weight, or with a verdict by another judge of a cascade
    than usual."""

    def __post_init__(self) -> None:
        if self.value is not None:
            object.__setattr__(self, "value", real_number(self.value))

    @classmethod
    def not_applicable(cls, reason: str) -> Score:
        """The score of a row that the metric does not apply to."""
        return cls(None, reason, status=Status.NOT_APPLICABLE)

    @classmethod
    def unanswered(cls, error: Unanswered) -> Score:
        """The score of a row for which the judge gave no usable answer."""
        return cls(None, error.reason, status=Status(error.status))
