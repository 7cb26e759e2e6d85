"""Scores: the result of one metric on one row, and its possible statuses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ragmetrics.errors import Unanswered


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
        if isinstance(self.value, float) and not math.isfinite(self.value):
            raise ValueError(f"a score of {self.value}: a missing value is a status")

    @classmethod
    def not_applicable(cls, reason: str) -> Score:
        """The score of a row that the metric does not apply to."""
        return cls(None, reason, status=Status.NOT_APPLICABLE)

    @classmethod
    def unanswered(cls, error: Unanswered) -> Score:
        """The score of a row for which the judge gave no usable answer."""
        return cls(None, error.reason, status=Status(error.status))
