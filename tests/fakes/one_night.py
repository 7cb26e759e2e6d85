"""A night or a gate in a process of its own, which begins at a moment that several agree on.

python -m tests.fakes.one_night --settings ragmetrics.yaml --date 2026-11-19 --at 1700000000.5

It prints the manifest, or the gate.
"""

from __future__ import annotations

import argparse
import datetime as dt
import time

from ragmetrics.comparison import run_gate
from ragmetrics.config import load_settings
from ragmetrics.dashboard import refresh_builds
from ragmetrics.pipeline import run_night
from ragmetrics.records import IndexBuild
from ragmetrics.storage import open_store


def main() -> None:
    """Wait for the moment, then run the night."""
    parser = argparse.ArgumentParser(description="One night, at a given moment.")
    parser.add_argument("--settings", required=True)
    parser.add_argument("--date", type=dt.date.fromisoformat, required=True)
    parser.add_argument("--at", type=float, default=0.0, help="seconds since 1970")
    parser.add_argument("--build", help="run the gate of this build, not the night,")
    parser.add_argument("--serving", help="against this one")
    told = parser.parse_args()
    settings = load_settings(told.settings)
    time.sleep(max(0.0, told.at - time.time()))
    if told.build:
        build = IndexBuild(dataset=settings.dataset, build=told.build, serving=told.serving)
        gate = run_gate(settings, build)
        refresh_builds(open_store(settings))
        print(gate.model_dump_json())
        return
    print(run_night(settings, told.date).manifest.model_dump_json())


if __name__ == "__main__":
    main()
