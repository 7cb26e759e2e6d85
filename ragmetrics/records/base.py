"""Base class of all records that are stored as JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of stored records: immutable, and unknown keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")
