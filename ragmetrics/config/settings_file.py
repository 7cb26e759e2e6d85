"""Reads a settings file. Relative paths in it are relative to its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ragmetrics.config.judge import JudgeSettings
from ragmetrics.config.settings import Settings, make_settings
from ragmetrics.errors import SettingsError
from ragmetrics.text import load_yaml

_PLACES = ("logs", "store", "golden", "labels", "corpus", "prompts")
"""Keys at the top whose value is a place."""


def load_settings(path: str | Path, **overrides: Any) -> Settings:
    """Read a settings file. Relative paths in it are relative to its folder.

    `overrides` replace top-level keys of the file. Raises SettingsError, which names the key.
    """
    file = Path(path)
    settings = make_settings({**_read(file), **overrides}, str(file))
    return settings.model_copy(update=_places_beside(file.parent, settings))


def _read(file: Path) -> dict[str, Any]:
    """The keys of a settings file. Raises SettingsError for a file that has none."""
    try:
        values = load_yaml(file.read_text(encoding="utf-8")) or {}
    except FileNotFoundError:
        where = "" if file.is_absolute() else f" in {Path.cwd()}"
        raise SettingsError(f"{file}: no such settings file{where}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsError(f"{file}: cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(values, Mapping):
        raise SettingsError(f"{file}: should be a mapping of keys to values")
    if strange := [key for key in values if not isinstance(key, str)]:
        raise SettingsError(f"{file}: {strange[0]!r:.50}: there is no such key")
    return {**values}


def _places_beside(base: Path, settings: Settings) -> dict[str, Any]:
    """The settings that are or hold a place, found from the folder `base`."""
    alerts, gate = settings.alerts, settings.gate
    drift_set = _beside(base, alerts.drift_set) if alerts.drift_set else None
    return {
        **{
            name: _beside(base, value)
            for name in _PLACES
            if (value := getattr(settings, name)) is not None
        },
        "labelled": tuple(_beside(base, place) for place in settings.labelled),
        "gate": gate.model_copy(update={"logs": _beside(base, gate.logs)}),
        "alerts": alerts.model_copy(update={"drift_set": drift_set}),
        **_judges_beside(base, settings),
    }


def _judges_beside(base: Path, settings: Settings) -> dict[str, Any]:
    if settings.judges:
        return {"judges": tuple(_judge_beside(base, judge) for judge in settings.judges)}
    return {"judge": _judge_beside(base, settings.judge)}


def _judge_beside(base: Path, judge: JudgeSettings) -> JudgeSettings:
    """The judge, with the file of a recording, or the folder of a model, found from a folder."""
    for key in ("also", "replaces"):
        if other := getattr(judge, key):
            judge = judge.model_copy(update={key: _judge_beside(base, other)})
    place = judge.argument
    if not place or not judge.kind.is_place(place):
        return judge
    return judge.model_copy(update={"name": f"{judge.kind.key}:{_beside(base, place)}"})


def _beside(base: Path, location: str) -> str:
    return location if "://" in location or Path(location).is_absolute() else str(base / location)
