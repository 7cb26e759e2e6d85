"""One cause, one incident: in messages, in the banner, in the summaries and on the terminal."""

from __future__ import annotations

import io
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ragmetrics import tables
from ragmetrics.alerts.deliver import Delivery
from ragmetrics.alerts.slack import compose
from ragmetrics.alerts.terminal import render
from ragmetrics.night import CoverageShort, NightResult, run_night
from ragmetrics.records import Manifest
from ragmetrics.settings import make_settings
from ragmetrics.stage import open_store
from ragmetrics.store.history import run_of
from ragmetrics.summaries import night_markdown, night_summary
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.unit.test_report import text

pytestmark = pytest.mark.e2e

METRICS = [
    "context_relevance",
    "context_precision",
    "context_recall",
    "context_relevancy",
    "faithfulness",
    "context_entity_recall",
]
LINES = (0.97, 0.98)
"""Two `min` rules on each metric that no night of these logs holds."""


class Site:
    """A dataset with a judge over HTTP, and all that is told of its nights."""

    def __init__(self, folder: Path, server: JudgeServer) -> None:
        self.folder = folder
        rules = [
            {"metric": name, "min": line, "min_rows": 5} for name in METRICS[:4] for line in LINES
        ]
        self.settings = make_settings(
            {
                "logs": f"{folder}/logs/{{date}}/",
                "store": str(folder / "store"),
                "metrics": METRICS,
                "judge": {"name": "openai", "base_url": server.base_url, "retries": 0},
                "alerts": {"rules": rules},
            }
        )

    def night(self, day: date, good: float | None = 0.4) -> tuple[Manifest, str]:
        """Run a night, without a log where `good` is None; its record and its error, if any."""
        if good is not None:
            rows = make_rows(20, good=good, night=day)
            for row in rows:  # new questions, or the judge's answers are known
                row["user_input"] = f"On {day}: {row['user_input']}"
            write_jsonl(self.folder / "logs" / str(day) / "a.jsonl", rows)
        error = ""
        try:
            run_night(self.settings, day)
        except CoverageShort as short:
            error = str(short)
        found = run_of(open_store(self.settings), day)
        assert found is not None
        return found, error

    def told(self, manifest: Manifest, error: str = "") -> dict[str, str]:
        """What each view says of a night."""
        files = open_store(self.settings)
        message = compose(manifest, manifest.findings, dashboard=None, redact=False)
        out = io.StringIO()
        console = Console(file=out, width=400)
        tables.print_nights(console, [NightResult(manifest, Delivery(None, sent=False))])
        pages = {
            name: files.read(f"dashboard/{path}").decode()
            for name, path in (
                ("overview", "index.html"),
                ("night", f"{manifest.date}/index.html"),
            )
        }
        heroes = {
            name: page.split('<ul class="messages">')[1].split('<p class="facts">')[0]
            for name, page in pages.items()
        }
        return {
            "slack": render(message) if message else "",
            "terminal": out.getvalue(),
            "artifact": night_markdown(files, manifest, "https://example.com/"),
            "e-mail": text(night_summary(files, manifest.date).decode()),
            "error": error,
            **{name: text(hero) for name, hero in heroes.items()},
        }


@pytest.fixture
def site(tmp_path: Path, judge_server: JudgeServer) -> Site:
    """Before any night."""
    return Site(tmp_path, judge_server)


def leads(listed: str) -> list[str]:
    """The items of a list as text."""
    return [line for line in listed.splitlines() if line.startswith(("• ", "- "))]


def test_a_judge_that_is_down_is_told_once(site: Site, judge_server: JudgeServer) -> None:
    """Six metrics have no verdict and eight alerts are not checked, for one reason."""
    site.night(NIGHT - timedelta(days=1))
    judge_server.faults(models=())
    manifest, error = site.night(NIGHT)
    kinds: list[Any] = [one.kind for one in manifest.findings if one.level != "ok"]
    assert kinds.count("judge_failures") == len(METRICS)
    assert kinds.count("metric") == 8
    for name, said in site.told(manifest, error).items():
        print(f"==== {name}\n{said}")


def test_a_missing_log_is_told_first_and_alone(site: Site) -> None:
    """Eight alerts that fire are not checked: they are counted below the cause."""
    site.night(NIGHT - timedelta(days=1))
    manifest, error = site.night(NIGHT, good=None)
    for name, said in site.told(manifest, error).items():
        print(f"==== {name}\n{said}")
