"""The key `preset`: which tool wrote the logs."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from ragmetrics.plugins import Kind

PRESETS: Kind[Any] = Kind(
    "ragmetrics.presets", "ragmetrics.logs.presets", "ragmetrics.logs.preset:Preset", "preset"
)


def known_preset(name: str) -> str:
    """Return the name of a preset. Raises ValueError for an unknown one. None is loaded."""
    if name not in PRESETS.names:
        raise ValueError(f"unknown preset {name!r}; the presets are: {', '.join(PRESETS.names)}")
    return name


def _named(schema: dict[str, Any]) -> None:
    schema["enum"] = list(PRESETS.names)


PresetName = Annotated[str, AfterValidator(known_preset), Field(json_schema_extra=_named)]
