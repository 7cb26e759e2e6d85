"""A store of two nights, gates and a calibration in which a test says every text of its logs.

`say(field)` gives the text of a field, as `user_input`, `tag key`, `file name`: hostile, plain or
made of words that are looked for afterwards. All of it is judged by the fake judge over HTTP.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from ragmetrics.comparison import run_gate
from ragmetrics.config import Settings, make_settings
from ragmetrics.dashboard import refresh_builds, refresh_dashboard
from ragmetrics.delivery import notify_failed_gate, notify_gate
from ragmetrics.people import calibrate
from ragmetrics.pipeline import CoverageShort, run_night
from ragmetrics.records import Gate, IndexBuild
from ragmetrics.storage import open_store
from tests.builders import night_values
from tests.fakes.labelled import make_labelled
from tests.fakes.logs import NIGHT, write_jsonl

Say = Callable[[str], str]
METRICS = ["context_relevance", "context_recall", "faithfulness", "response_relevancy"]
NIGHTS = (NIGHT - timedelta(days=1), NIGHT)
ROWS = 12
_HEIGHT = "The height of tower {0} is {1} metres."


@dataclass(frozen=True)
class Told:
    """A store after its nights, and what is left to be read beside it."""

    settings: Settings
    gate: Gate

    @property
    def site(self) -> Path:
        """The folder of the dashboard."""
        return Path(self.settings.store) / "dashboard"

    @property
    def pages(self) -> list[Path]:
        """Every page of the site."""
        return sorted(self.site.rglob("*.html"))


def tell_everything(folder: Path, say: Say, base_url: str, **change: Any) -> Told:
    """Run two nights, of which the second is worse; hold a build, leave an event undecided, and
    calibrate the judge.
    """
    settings = _settings(folder, base_url, **change)
    for night, good in zip(NIGHTS, (ROWS, 3), strict=True):
        _write_logs(folder / "logs" / str(night), _rows(say, night, good), say)
        try:
            run_night(settings, night)
        except CoverageShort:  # a broken file among its logs, and a row that no judge takes
            continue
        raise AssertionError("the broken log of the night was not told")
    gate = _gate(folder, settings, say)
    calibrated = [row | {"tags": _tags(say, 0)} for row in make_labelled(ROWS)]
    bad = calibrated[0] | {"labels": {"gold": {say("label key"): "no number"}}}
    labelled = write_jsonl(folder / f"{say('set name')}.jsonl", [*calibrated, bad])
    calibrate(settings, [str(labelled)], files=open_store(settings), now=_moment(NIGHT))
    refresh_dashboard(open_store(settings))
    return Told(settings, gate)


def _settings(folder: Path, base_url: str, **change: Any) -> Settings:
    judge = {"name": "openai", "model": "fake", "base_url": base_url, "retries": 0}
    values: dict[str, Any] = night_values(
        folder,
        logs="logs/{date}/",
        dataset="towers",
        metrics=METRICS,
        shards=1,
        judge=judge,
        dashboard_url="https://dash.example/towers",
        gate={"logs": f"{folder}/builds/{{build}}.jsonl", "min_questions": 4},
        rules=[{"metric": "context_recall", "min": 0.9, "min_rows": 4}],
    )
    return make_settings({**values, **change})


def _gate(folder: Path, settings: Settings, say: Say) -> Gate:
    for build, good in (("b1", ROWS), ("b2", 0)):
        rows = [{**row, "index_build": build} for row in _rows(say, NIGHT, good)]
        write_jsonl(folder / "builds" / f"{build}.jsonl", rows)
    gate = run_gate(settings, IndexBuild(dataset="towers", build="b2", serving="b1"))
    notify_gate(settings, gate)
    notify_failed_gate(settings, f"index build: {say('reason')}", say("event"), "event-1")
    refresh_builds(open_store(settings))
    return gate


def _rows(say: Say, night: date, good: int) -> list[dict[str, Any]]:
    """Rows of which the first so many have their answer; the third's question is one long word."""
    rows = [_row(say, night, number, answered=number < good) for number in range(ROWS)]
    rows[2]["user_input"] = say("long word")
    return rows


def _row(say: Say, night: date, number: int, *, answered: bool) -> dict[str, Any]:
    answer = _HEIGHT.format(number, 100 + number)
    return {
        "id": f"{number} {say('id')}",
        "timestamp": (_moment(night) + timedelta(seconds=number)).isoformat(),
        "user_input": f"{say('user_input')} What is the height of tower {number}?",
        "retrieved_contexts": [
            f"{answer if answered else ''} {say('retrieved_contexts')}",
            f"{say('retrieved_contexts')} No. {number}",
        ],
        "retrieved_context_ids": [f"{say('context id')}{number}", f"kb-{number}"],
        "response": f"{answer} {say('response')}",
        "reference": f"{answer} {say('reference')}",
        "reference_contexts": [f"{answer} {say('reference_contexts')}"],
        "reference_context_ids": [f"kb-{number}"],
        "index_build": f"{say('index_build')} {night}",
        "language": say("language"),
        "tags": _tags(say, number),
    }


def _tags(say: Say, number: int) -> dict[str, str]:
    value = f"{say('tag value')} {number % 2}"
    return {say("tag key"): value, "channel": ("web", "app")[number % 2]}


def _write_logs(folder: Path, rows: list[dict[str, Any]], say: Say) -> None:
    """The night's rows; some that cannot be read, and a file that breaks off."""
    bad: Iterable[Any] = (
        rows[0] | {"tags": {say("tag key"): ["no text"]}},
        rows[0] | {"retrieved_contexts": {say("retrieved_contexts"): 1}},
        rows[0] | {"timestamp": say("user_input")},
        json.dumps(say("user_input")),
        f"{say('user_input')} {{",
    )
    lines = [row if isinstance(row, str) else json.dumps(row) for row in (*rows, *bad)]
    # A line break within a broken line makes two of it, as in any log.
    write_jsonl(folder / f"{say('file name')}.jsonl", lines)
    whole = gzip.compress("\n".join(lines[:2]).encode())
    (folder / f"broken {say('file name')}.jsonl.gz").write_bytes(whole[: len(whole) // 2])


def _moment(night: date) -> datetime:
    return datetime(night.year, night.month, night.day, tzinfo=UTC)
