"""Base class of all records that are stored as JSON, and what identifies a judge in them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict


class Record(BaseModel):
    """Base of stored records: immutable, and unknown keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


_FORMER = re.compile(r"(?<![^\s])embedded(?![^\s,:])")
_CURRENT = re.compile(r"(?<![^\s])lexical(?![^\s,:])")


def current_judge_name(name: object) -> object:
    """The name of a judge or of a panel, in which the lexical judge may have its former name."""
    return _FORMER.sub("lexical", name) if isinstance(name, str) else name


def former_judge_name(name: str) -> str:
    """The name by which alerts know a judge: one that fires must stay the same alert."""
    return _CURRENT.sub("embedded", name)


def with_current_judges(settings: object) -> object:
    """The stored settings of a night, in which judges have the names that they have now."""
    if not isinstance(settings, Mapping):
        return settings
    named = settings.keys() & {"judge", "judges", "sample"}
    return {**settings, **{key: _renamed(settings[key]) for key in named}}


def _renamed(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _renamed(inner) for key, inner in value.items()}
    return (
        [_renamed(inner) for inner in value]
        if isinstance(value, list)
        else current_judge_name(value)
    )


JudgeName = Annotated[str, BeforeValidator(current_judge_name)]
"""The name of a judge in a record, of any version."""


def fingerprint(*parts: object) -> str:
    """A short digest of the parts that identify a judge or a metric."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=6).hexdigest()
