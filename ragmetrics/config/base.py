"""The base of all sections of the settings, and what their values have in common.

It also says what is wrong with settings: every mistake, and the key that was probably meant.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from ragmetrics.errors import SettingsError
from ragmetrics.records import explain_mistakes, explain_validation_error


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


log = logging.getLogger(__name__)


def explain_settings_error(error: ValidationError, settings: type[BaseModel]) -> str:
    """All mistakes in settings, each with its key; several are on lines of their own.

    For an unknown key it names the known key that is most like it.
    """
    lines = []
    mistakes = error.errors(include_url=False, include_input=False)
    for mistake, text in zip(mistakes, explain_mistakes(mistakes), strict=True):
        meant = _meant(mistake["loc"], settings) if mistake["type"] == "extra_forbidden" else ""
        lines.append(f"{text}; did you mean `{meant}`?" if meant else text)
    return lines[0] if len(lines) == 1 else "\n  ".join([f"{len(lines)} mistakes", *lines])


def _meant(place: Sequence[int | str], model: type[BaseModel]) -> str:
    """The known key that is most like the unknown one at a place; empty without one."""
    *path, key = place
    section: type[BaseModel] | None = model
    for part in path:
        if isinstance(part, str) and section:
            field = section.model_fields.get(part)
            inside = next(models_in(field.annotation), None) if field else None
            section = inside or _plugins(section).get(part)
    known = [*section.model_fields, *_plugins(section)] if section else []
    return next(iter(get_close_matches(str(key), known, n=1, cutoff=0.6)), "")


def _plugins(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The sections that plugins add to a section."""
    keys: dict[str, str] = getattr(model, "plugin_keys", dict)()
    models: dict[str, type[BaseModel]] = getattr(model, "plugin_models", dict)()
    return dict.fromkeys(keys, BaseModel) | models


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models inside a type, such as `tuple[Rule, ...] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def retired_variables(retired: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The removed keys that environment variables set, which no field reads."""
    lower = {name.lower(): value for name, value in environment.items()}
    return {key: lower[name] for key in retired if (name := f"ragmetrics_{key}") in lower}


def without_retired(values: object, retired: Mapping[str, str]) -> Any:
    """The values without removed keys. `retired` says of each what serves in its place, and one
    that is set logs it as a warning.
    """
    if not isinstance(values, Mapping) or not retired.keys() & values.keys():
        return values
    for key in retired.keys() & values.keys():
        if values[key] is not None:
            log.warning("settings: `%s` was removed and has no effect: %s", key, retired[key])
    return {key: value for key, value in values.items() if key not in retired}
