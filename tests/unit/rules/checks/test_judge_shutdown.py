"""A judge's model that ends soon, as its endpoint announces: told by the night and by doctor."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import AlertSettings, make_settings
from ragmetrics.pipeline import run_night
from ragmetrics.records import Finding
from ragmetrics.rules.checks.judge_shutdown import (
    judge_shutdown,
    shutdown_of,
    shutdowns_of,
)
from ragmetrics.testing import findings_of
from tests.builders import judge_at, night_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.nights import night

END = {"gpt-4.1-mini": date(2027, 1, 14)}


def found(before: int, ends: Any = END, earlier: Any = (), **checks: float) -> list[Finding]:
    """The findings so many days before the end."""
    manifest = night().model_copy(
        update={"date": END["gpt-4.1-mini"] - timedelta(days=before), "shutdowns": ends}
    )
    settings = AlertSettings(checks=checks)
    return findings_of(judge_shutdown, manifest, settings=settings, history=earlier)


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (60, "is shut down on 2027-01-14, in 60 days: set another"),
        (1, "is shut down on 2027-01-14, tomorrow: set another"),
        (0, "is shut down on 2027-01-14, today: set another"),
        (-3, "was shut down on 2027-01-14: set another"),
    ],
)
def test_an_end_is_told_from_sixty_days_before(before: int, words: str) -> None:
    """As a warning, which is repeated each week and is no alarm."""
    (finding,) = found(before)
    assert (finding.level, finding.severity) == ("breach", "warning")
    assert words in finding.message


def test_what_is_far_or_unknown_is_not_told() -> None:
    """No finding at all: most servers announce nothing."""
    assert found(61) == found(5, ends=None) == found(5, ends={}) == []
    assert found(61, judge_shutdown=90.0)
    assert not found(5, judge_shutdown=0.0)


def test_another_model_resolves_the_alert() -> None:
    """The night after the change has an `ok`."""
    (before,) = found(5)
    was = night().model_copy(update={"findings": [before.model_copy(update={"state": "firing"})]})
    (now,) = found(4, ends={}, earlier=[was])
    assert now.level == "ok"


def test_a_night_asks_the_list_of_models(tmp_path: Path, judge_server: JudgeServer) -> None:
    """The manifest has the day, and the finding is one of its own."""
    judge_server.faults(shutdown_date=str(NIGHT + timedelta(days=20)), models=["judge"])
    write_jsonl(tmp_path / "logs" / f"dt={NIGHT}" / "a.jsonl", make_rows(4))
    settings = night_settings(tmp_path, judge=judge_at(judge_server, model="judge"))
    manifest = run_night(settings, NIGHT).manifest
    assert manifest.shutdowns == {"judge": NIGHT + timedelta(days=20)}
    told = [finding for finding in manifest.findings if finding.kind == "judge_shutdown"]
    assert [finding.level for finding in told] == ["breach"]


def test_a_server_without_a_list_is_no_problem(judge_server: JudgeServer) -> None:
    """Nothing is known then; a day that is none is none."""
    nowhere = make_settings({"judge": {"name": "openai", "base_url": "http://127.0.0.1:9/v1"}})
    assert shutdowns_of(nowhere) is None
    judge_server.faults(shutdown_date="soon", models=["judge"])
    assert shutdowns_of(make_settings({"judge": judge_at(judge_server, model="judge")})) == {}
    assert shutdowns_of(make_settings({"judge": "lexical"})) == {}


def test_doctor_says_it_too(judge_server: JudgeServer) -> None:
    """Of the judge that it asks, whatever the others are."""
    today = datetime.now(UTC).date()
    judge_server.faults(shutdown_date=str(today + timedelta(days=9)), models=["judge"])
    settings = make_settings({"judge": judge_at(judge_server, model="judge")})
    assert "in 9 days" in shutdown_of(settings.judge, today, settings)
    judge_server.faults(shutdown_date=None)
    assert shutdown_of(settings.judge, today, settings) == ""
