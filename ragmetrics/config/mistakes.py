"""Says what is wrong with settings: every mistake, and the key that was probably meant.

Keys that were removed are still read, with a warning that names the successor.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from ragmetrics.records import explain_mistakes

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
