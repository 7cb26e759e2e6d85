"""Base class of all records that are stored as JSON, and what identifies a judge in them."""

from __future__ import annotations

import hashlib

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of stored records: immutable, and unknown keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def fingerprint(*parts: object) -> str:
    """A short digest of the parts that identify a judge or a metric."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=6).hexdigest()
