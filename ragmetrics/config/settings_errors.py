"""Says what is wrong with settings: every mistake, and the key that was probably meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from ragmetrics.records import explain_mistakes


def explain_settings_error(error: ValidationError, settings: type[BaseModel]) -> str:
    """All mistakes in settings, each with its key; several are on lines of their own.

    For an unknown key it names the known key that is most like it.
    """
    lines = []
    mistakes = error.errors(include_url=False, include_input=False)
    for one, text in zip(mistakes, explain_mistakes(mistakes), strict=True):
        meant = _meant(one["loc"], settings) if one["type"] == "extra_forbidden" else ""
        lines.append(f"{text}; did you mean `{meant}`?" if meant else text)
    return lines[0] if len(lines) == 1 else "\n  ".join([f"{len(lines)} mistakes", *lines])


def _meant(place: Sequence[int | str], model: type[BaseModel]) -> str:
    """The known key that is most like the unknown one at a place; empty without one."""
    *path, key = place
    found: type[BaseModel] | None = model
    for part in path:
        if isinstance(part, str) and found:
            field = found.model_fields.get(part)
            inside = next(models_in(field.annotation), None) if field else None
            found = inside or _plugins(found).get(part)
    known = [*found.model_fields, *_plugins(found)] if found else []
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
