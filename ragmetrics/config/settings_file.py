"""Settings from a file, and what is named on the command line or in Python in its place.

Relative paths in a file are relative to its folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ragmetrics.config.base import make_section
from ragmetrics.config.judge import JudgeSettings, make_judge_section
from ragmetrics.config.judge_kinds import judge_kind
from ragmetrics.config.judging import Budget, check_alone, check_cascade
from ragmetrics.config.sections import known_preset
from ragmetrics.config.settings import MetricChoice, Settings, make_settings
from ragmetrics.errors import SettingsError
from ragmetrics.plugins import UnknownPlugin
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


Judged = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None
"""A judge as users write it: a name, a mapping of settings, or a list of these."""


def with_overrides(
    settings: Settings,
    judge: Judged = None,
    model: str | None = None,
    base_url: str | None = None,
    *,
    metrics: Sequence[MetricChoice] | MetricChoice | None = None,
    golden: str | None = None,
    budget: Mapping[str, Any] | None = None,
    preset: str | None = None,
) -> Settings:
    """The settings with another judge, or with another model or URL for their judge; with other
    metrics, and another golden set, budget and preset. A list of judges is a panel. None: no
    change.
    """
    update: dict[str, Any] = {"golden": golden} if golden is not None else {}
    if metrics is not None:
        update["metrics"] = (metrics,) if isinstance(metrics, str | Mapping) else tuple(metrics)
    if budget is not None:
        update["budget"] = make_section(Budget, "budget", budget)
    if preset is not None:
        try:
            update["preset"] = known_preset(preset)
        except ValueError as error:
            raise SettingsError(f"preset: {error}") from None
    return _judged_by(settings.model_copy(update=update), judge, model, base_url)


def _judged_by(
    settings: Settings, judge: Judged, model: str | None, base_url: str | None
) -> Settings:
    more = {name: value for name, value in (("model", model), ("base_url", base_url)) if value}
    if judge is None and settings.judges:
        if more:
            raise SettingsError(
                f"{next(iter(more))}: the settings name several judges; name the judge too"
            )
        return settings
    chosen = [judge] if judge is None or isinstance(judge, str | Mapping) else list(judge)
    several = len(chosen) > 1
    base = settings.judge.model_copy(update={"also": None}) if several else settings.judge
    judges = tuple(_judge_like(base, judge, more) for judge in chosen)
    if not judges:
        raise SettingsError("judge: the list is empty")
    cascades = settings.aggregate == "cascade"
    if several:
        try:
            check_alone(judges)
            if cascades:
                check_cascade(judges)
        except ValueError as error:
            raise SettingsError(str(error)) from None
    update = {
        "judge": settings.judge if several else judges[0],
        "judges": judges if several else (),
        "aggregate": "mean" if cascades and not several else settings.aggregate,
    }
    return settings.model_copy(update=update)


def _judge_like(
    base: JudgeSettings, judge: str | Mapping[str, Any] | None, more: Mapping[str, str]
) -> JudgeSettings:
    overrides = judge if isinstance(judge, Mapping) else {"name": judge} if judge else {}
    known: dict[str, Any] = {name: value for name, value in base}
    if overrides.get("name", base.name) != base.name:
        known = {name: known[name] for name in JudgeSettings.model_fields} | _taken(base, overrides)
        del known["also"]
    if "from" in overrides:
        known.pop("learned_from", None)
    merged = make_judge_section({**known, **overrides, **more})
    if more and not merged.remote:
        raise SettingsError(
            f"{next(iter(more))}: has no effect on the judge {merged.name}; choose the judge openai"
        )
    return merged


def _taken(base: JudgeSettings, judge: Mapping[str, Any]) -> dict[str, Any]:
    """What a judge of another kind takes from the one that it replaces."""
    try:
        return dict(judge_kind(str(judge["name"])).settings.taken_from(base))
    except UnknownPlugin:  # the validation of the name says so
        return {}
