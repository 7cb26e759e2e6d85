"""A log of two nights, of which the second fell, and what a store says after both."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path
from typing import Any

from ragmetrics.config import load_settings
from ragmetrics.delivery import load_alerts
from ragmetrics.pipeline import run_night
from ragmetrics.storage import Files
from tests.fakes.logs import make_rows, write_jsonl

NIGHTS = (date(2026, 11, 18), date(2026, 11, 19))
_SETTINGS = """\
dataset: towers
logs: logs/dt={date}/
store: store
metrics: [context_recall]
shards: 2
alerts:
  rules: [{metric: context_recall, max_drop: 0.1, versus: "trailing:7"}]
"""
_OF_THE_CLOCK = {"started_at", "finished_at", "seen_at", "ranked_at"}


def write_two_nights(folder: Path) -> Path:
    """Write the log and the settings into a folder; return the settings file."""
    for night, good in zip(NIGHTS, (1.0, 0.3), strict=True):
        rows = make_rows(40, good=good, night=night)
        write_jsonl(folder / f"logs/dt={night}/log.jsonl", rows)
    settings = folder / "ragmetrics.yaml"
    settings.write_text(_SETTINGS, encoding="utf-8")
    return settings


def results_of_run_night(settings_file: Path) -> dict[str, Any]:
    """What the store says after `run_night` of both nights. The store is removed again, so that
    others can run the same nights at the same place: a run's id depends on its place.
    """
    settings = load_settings(settings_file)
    for night in NIGHTS:
        run_night(settings, night)
    found = results(Path(settings.store))
    shutil.rmtree(settings.store)
    return found


def results(store: Path) -> dict[str, Any]:
    """The manifests without their times, the alert states, and the names of the pages."""
    manifests = [json.loads(path.read_text()) for path in sorted(store.glob("runs/*/*.json"))]
    dashboard = store / "dashboard"
    return {
        "manifests": [
            {key: value for key, value in manifest.items() if key not in _OF_THE_CLOCK}
            for manifest in manifests
        ],
        "alerts": load_alerts(Files(str(store))).model_dump(mode="json"),
        "pages": sorted(str(page.relative_to(dashboard)) for page in dashboard.rglob("*.html")),
    }
