"""The key `sample`: how many rows the judge scores."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from ragmetrics.config.judge import SettingsModel, not_bool
from ragmetrics.config.judge_kinds import judge_kind


class SampleSettings(SettingsModel):
    """The judge scores a sample of the rows; a cheap judge scores all rows."""

    rows: int | None = Field(None, ge=2)
    """Sample size per metric, among the rows that have all fields the metric needs."""
    half_width: float | None = Field(None, gt=0, lt=1)
    """Half the width of the confidence interval of the mean. The sample is as large as this
    requires."""
    strata: tuple[str, ...] = ()
    """Tags by which the sample is stratified: in proportion, at least two rows of each value."""
    draw: Literal["uniform", "active"] = "uniform"
    """`active`: rows that the cheap judge predicts badly are drawn more often."""
    seed: int = 0
    """Seed of the random draw."""
    cheap: Literal["embedded", "learned"] = "embedded"
    """The judge of all rows. `learned` predicts the verdicts of the judge from those in the store;
    while there are too few of them, or where it is not better, it is the embedded judge."""

    @property
    def learns(self) -> bool:
        """True if the cheap judge is fitted to verdicts in the store."""
        return judge_kind(self.cheap).fitted

    _numbers = field_validator("rows", "half_width", "seed", mode="before")(not_bool)

    @model_validator(mode="after")
    def _one_size(self) -> SampleSettings:
        if (self.rows is None) == (self.half_width is None):
            raise ValueError("set either rows or half_width")
        return self
