"""The nightly flow judges its labelled set before anything else, once a day."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import load_settings
from ragmetrics.people import load_calibrations
from ragmetrics.pipeline import run_night
from ragmetrics.records import Manifest
from ragmetrics.storage import Files
from tests.builders import judge_at, save_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.labelled import make_labelled
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("prefect_server", "without_pages")


@pytest.fixture
def settings(tmp_path: Path, judge_server: JudgeServer) -> str:
    """A settings file beside a labelled set and the logs of two nights."""
    write_jsonl(tmp_path / "fixed.jsonl", make_labelled(25))
    for day in range(2):
        night = NIGHT + timedelta(days=day)
        write_jsonl(tmp_path / "logs" / f"{night}.jsonl", make_rows(5, night=night))
    return str(
        save_settings(
            tmp_path,
            logs="logs/{date}.jsonl",
            store="store",
            metrics=["context_relevance"],
            judge=judge_at(judge_server),
            alerts={"drift_set": "fixed.jsonl"},
        )
    )


def level(night: Manifest) -> Any:
    """What the night says of the judge's level."""
    return next(finding for finding in night.findings if finding.key.endswith("judge_drift/level"))


def test_the_flow_judges_the_set(settings: str, tmp_path: Path) -> None:
    """The second night of the day finds it judged; without Prefect it is the same."""
    from flows.nightly import nightly

    first = nightly(settings, NIGHT).manifest
    assert level(first).level == "ok"
    assert first.labelled is not None
    assert first.labelled.requests == 50, "a grade for each context, which no other figure holds"
    second = run_night(load_settings(settings), NIGHT + timedelta(days=1)).manifest
    assert (level(second).level, level(second).message) == (
        "ok",
        "openai:gpt-6-luna on the labelled set: no significant change",
    )
    assert second.labelled is None
    (kept,) = load_calibrations(Files(str(tmp_path / "store")))
    assert (kept.name, kept.rows) == ("fixed", 25)


def test_a_set_that_is_not_there_stops_the_night(settings: str, tmp_path: Path) -> None:
    """It is a mistake in the settings."""
    from flows.nightly import nightly

    (tmp_path / "fixed.jsonl").unlink()
    with pytest.raises(Exception, match=r"fixed\.jsonl: no such log"):
        nightly(settings, NIGHT)
