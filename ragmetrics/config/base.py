"""The base of all sections of the settings, and what their values have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ragmetrics.errors import SettingsError
from ragmetrics.records import explain_validation_error


class SettingsModel(BaseModel):
    """Base class of all sections of the settings."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


S = TypeVar("S", bound=SettingsModel)
T = TypeVar("T")


def repeated(values: Iterable[T]) -> T | None:
    """The first of the values that occur more than once; None without one."""
    return next((value for value, count in Counter(values).items() if count > 1), None)


def not_bool(value: object) -> object:
    """Return the value. Raises ValueError for a boolean, which pydantic reads as 0 or 1."""
    if isinstance(value, bool):
        raise ValueError("should be a number")
    return value


def number_of_nights(value: object) -> object:
    """`7 nights` as 7."""
    number, _, unit = value.partition(" ") if isinstance(value, str) else (value, "", "")
    return number if unit in ("", "night", "nights") else value


def as_mapping(value: object) -> object:
    """`openai` as `{"name": "openai"}`."""
    return {"name": value} if isinstance(value, str) else value


def make_section(kind: type[S], key: str, values: Mapping[str, Any]) -> S:
    """Validate a section that was named on the command line or in Python. Environment variables are
    ignored.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise SettingsError(f"{key}: {explain_validation_error(error)}") from None
