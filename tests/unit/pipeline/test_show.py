"""Showing a night: what could not be written is said, sent and written by the next run."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings
from ragmetrics.delivery.dashboard_failure import compose_dashboard_failure
from ragmetrics.errors import StoreError
from ragmetrics.pipeline import BackfillShort, CoverageShort, run_backfill, run_night
from ragmetrics.storage import Files, open_store
from tests.builders import night_settings
from tests.fakes.formats import slack_json
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.nights import night
from tests.fakes.slack import SlackServer

BAD, NEXT = NIGHT + timedelta(days=1), NIGHT + timedelta(days=2)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Three nights of which the second is bad."""
    for day, good in ((NIGHT, 1.0), (BAD, 0.3), (NEXT, 1.0)):
        write_jsonl(tmp_path / "logs" / f"{day}.jsonl", make_rows(20, good=good, night=day))
    return night_settings(
        tmp_path, logs="logs/{date}.jsonl", rules=[{"metric": "context_recall", "min": 0.9}]
    )


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Refuses writes to files below a folder of the store, or to none again."""
    really: Any = Files.write
    refused = [""]

    def write(self: Files, path: str, data: bytes) -> None:
        folder = refused[0]
        if folder and f"/store/{folder}" in self.uri(path):
            raise StoreError(f"writing {self.uri(path)}: access denied (AccessDenied)")
        really(self, path, data)

    monkeypatch.setattr(Files, "write", write)
    return lambda folder: refused.__setitem__(0, folder)


def page(settings: Settings, day: date) -> bytes | None:
    """The page of a night."""
    return open_store(settings).find(f"dashboard/{day}/index.html")


@pytest.mark.parametrize("folder", ["dashboard/", "history/", "runs/"])
def test_the_alert_goes_first_and_a_second_message_says_what_is_missing(
    settings: Settings, slack_server: SlackServer, refuse: Callable[[str], None], folder: str
) -> None:
    """The run fails with the reason, also where it ran without Prefect."""
    run_night(settings, NIGHT)
    refuse(folder)
    with pytest.raises(CoverageShort, match=rf"store/{folder}.*access denied"):
        run_night(settings, BAD)
    alert, behind = slack_server.delivered
    assert "Context recall" in alert["text"]
    assert "the dashboard could not be written for" in behind["text"]
    assert folder in json.dumps(behind["blocks"])


def test_the_next_night_writes_the_page_that_is_missing(
    settings: Settings, refuse: Callable[[str], None]
) -> None:
    """With what changed since the night before it."""
    run_night(settings, NIGHT)
    refuse("dashboard/")
    with pytest.raises(CoverageShort):
        run_night(settings, BAD)
    assert page(settings, BAD) is None
    refuse("")
    run_night(settings, NEXT)
    assert page(settings, BAD) is not None
    assert open_store(settings).exists(f"dashboard/{BAD}/changes.html")


def test_the_next_night_writes_the_page_that_is_out_of_date(
    settings: Settings, refuse: Callable[[str], None], tmp_path: Path
) -> None:
    """A late file came, and the pages of the run that read it could not be written."""
    run_night(settings, NIGHT)
    run_night(settings, BAD)
    write_jsonl(tmp_path / "logs" / f"{BAD}.jsonl", make_rows(30, good=0.3, night=BAD))
    before = page(settings, BAD)
    refuse(f"dashboard/{BAD}")
    with pytest.raises(CoverageShort):
        run_night(settings, BAD)
    assert page(settings, BAD) == before
    refuse("")
    run_night(settings, NEXT)
    assert page(settings, BAD) != before


def test_a_past_night_whose_scores_are_gone_costs_no_alert(
    settings: Settings, slack_server: SlackServer
) -> None:
    """Nor does it keep a later night from being shown; its own page is written without rows."""
    run_night(settings, NIGHT)
    files = open_store(settings)
    for folder in ("scores", "rows", "dashboard"):
        for info in files.below(folder):
            files.remove(info.path)
    run_night(settings, BAD)
    assert "Context recall" in slack_server.delivered[0]["text"]
    assert page(settings, NIGHT) is not None
    assert page(settings, BAD) is not None


@pytest.mark.parametrize("folder", [f"dashboard/{BAD}", "dashboard/index.html"])
def test_a_backfill_goes_on_with_what_is_not_shown(
    settings: Settings, refuse: Callable[[str], None], folder: str
) -> None:
    """It publishes all nights, says which are not shown, and shows them when it is run again."""
    refuse(folder)
    with pytest.raises(BackfillShort, match="access denied"):
        run_backfill(settings, NIGHT, NEXT).check()
    assert len(open_store(settings).below("runs")) == 3
    refuse("")
    again = run_backfill(settings, NIGHT, NEXT)
    again.check()
    assert page(settings, BAD) is not None
    assert open_store(settings).exists("dashboard/index.html")


def test_the_message_has_no_markup_of_its_reason() -> None:
    """What a server says is shown as it is."""
    message = compose_dashboard_failure(night(), "writing <b>: *no*", "https://prefect.example/run")
    assert "&lt;b&gt;" in slack_json(message)
    assert "https://prefect.example/run" in slack_json(message)
