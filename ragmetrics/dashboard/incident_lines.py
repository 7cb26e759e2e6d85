"""The incidents of many nights in lines: when, what fell, where, why, and whether it is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from ragmetrics.dashboard.night_status import NightStatus
from ragmetrics.messages import Text, night_story, text_of
from ragmetrics.records import Manifest, Transition

MOST = 10
"""Incidents on the overview; each night has its own."""


@dataclass(frozen=True)
class IncidentLine:
    """The alerts that fired in one night."""

    night: date
    what: str
    where: str
    why: str
    ended: date | None
    """The night in which the last of them resolved; None: one still fires."""


def incident_lines(judged: Sequence[tuple[Manifest, NightStatus]]) -> list[IncidentLine]:
    """The nights in which alerts fired, newest first; `judged` are all nights, oldest first."""
    lines = []
    resolved: dict[str, date] = {}
    for night, status in reversed(judged):
        fired = _keys(night, "fired")
        if fired:
            ends = [resolved.get(one.key) for one in night.findings if one.transition == "fired"]
            ended = None if None in ends else max(end for end in ends if end)
            lines.append(_line(night, status, ended))
        resolved = {key: end for key, end in resolved.items() if key not in fired}
        resolved |= dict.fromkeys(_keys(night, "resolved"), night.date)
    return lines[:MOST]


def _keys(night: Manifest, transition: Transition) -> set[str]:
    """The keys of the alerts with a transition, and their keys of earlier versions."""
    moved = [one for one in night.findings if one.transition == transition]
    former = {one.renamed_from for one in moved} - {"", *(one.key for one in night.findings)}
    return {one.key for one in moved} | former


def _line(night: Manifest, status: NightStatus, ended: date | None) -> IncidentLine:
    """What fired, and nothing else of the night."""
    fired = [one for one in status.incidents if one.transition == "fired"]
    story = night_story(night.model_copy(update={"falls": []}), fired)
    what = story.headline or status.words
    return IncidentLine(status.date, what, _first(story.where), _first(story.why), ended)


def _first(lines: Sequence[Text]) -> str:
    return text_of(lines[0]) if lines else ""
