"""Settings of a sampled night: how many rows the judge is asked about, and how they are drawn."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from ragmetrics.config.judge import SettingsModel


class SampleSettings(SettingsModel):
    """So many rows of each metric are judged; the embedded judge scores all of them."""

    rows: int | None = Field(None, ge=2)
    """Of each metric, of those rows that have all it needs."""
    half_width: float | None = Field(None, gt=0, lt=1)
    """As many rows as make the interval of the mean so wide either way."""
    strata: tuple[str, ...] = ()
    """Tags: their values are sampled in proportion, at least two rows of each."""
    seed: int = 0
    """Another one draws other rows."""

    @field_validator("rows", "half_width", "seed", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("should be a number")
        return value

    @model_validator(mode="after")
    def _says_how_many(self) -> SampleSettings:
        if (self.rows is None) == (self.half_width is None):
            raise ValueError("say rows or half_width, one of them")
        return self
