"""Places in a settings file: relative paths are relative to its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragmetrics.config.judge import JudgeSettings

if TYPE_CHECKING:
    from ragmetrics.config.settings import Settings

_PLACES = ("logs", "store", "golden", "labels", "corpus", "prompts")
"""Keys at the top whose value is a place."""


def places_beside(base: Path, settings: Settings) -> dict[str, Any]:
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
    if judge.replaces:
        judge = judge.model_copy(update={"replaces": _judge_beside(base, judge.replaces)})
    place = judge.argument
    if not place or not judge.kind.is_place(place):
        return judge
    return judge.model_copy(update={"name": f"{judge.kind.key}:{_beside(base, place)}"})


def _beside(base: Path, location: str) -> str:
    return location if "://" in location or Path(location).is_absolute() else str(base / location)
