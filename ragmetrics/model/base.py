"""The base of all that is stored as JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of stored records: unknown keys are kept out, values do not change."""

    model_config = ConfigDict(frozen=True, extra="ignore")
