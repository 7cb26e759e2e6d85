"""A judge that is lost in the middle of a night, through the real flow.

The night ends at its deadline, is published and told of, and a rerun asks for what is missing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows import run_state as attempts
from ragmetrics.config import load_settings
from ragmetrics.judges import rate_limiter as gate
from ragmetrics.pipeline import CoverageShort
from ragmetrics.records import Manifest
from ragmetrics.storage import Runs, open_store
from tests.builders import judge_at, save_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.usefixtures("prefect_server")

ROWS, GOOD = 40, 12
EIGHT_HOURS = 8 * 3600
DEADLINE = 4.0
FAULTS: dict[str, dict[str, Any]] = {
    "answers, then hangs": {"then": "hang"},
    "429 for ever": {"then": "429"},
    "503 for ever": {"then": "503"},
    "429, come back in 8 h": {"then": "429", "retry_after": EIGHT_HOURS},
    "503, come back in 8 h": {"then": "503", "retry_after": EIGHT_HOURS},
}


@pytest.fixture
def settings(tmp_path: Path, judge_server: JudgeServer) -> Callable[..., str]:
    """Writes a settings file for one night of 40 rows, which needs 40 requests."""
    write_jsonl(tmp_path / f"logs/dt={NIGHT}/log.jsonl", make_rows(ROWS))

    def write(**changes: Any) -> str:
        return str(
            save_settings(
                tmp_path,
                {
                    "logs": "logs/dt={date}/",
                    "store": "store",
                    "metrics": ["context_recall"],
                    "shards": 2,
                    "deadline": f"{DEADLINE:g}s",
                    "judge": judge_at(judge_server, concurrency=4),
                    "alerts": {
                        "rules": [{"metric": "context_recall", "min": 0.5, "min_rows": 5}],
                        "checks": {"canaries": 0},
                    },
                    **changes,
                },
            )
        )

    return write


@pytest.fixture(autouse=True)
def _as_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process knows of endpoints goes with it: the rerun is another one."""
    monkeypatch.setattr(gate, "_limiters", {})
    monkeypatch.setattr(gate, "_dead", set())


def run(settings: str) -> Manifest:
    """Run the flow in this process."""
    from flows.nightly import nightly

    found: Manifest = nightly(settings, NIGHT).manifest
    return found


def published(settings: str) -> Manifest:
    """The night as it stands in the store."""
    found = Runs(open_store(load_settings(settings))).current(NIGHT)
    assert found is not None
    return found


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_lost_judge_does_not_keep_the_night(
    fault: str,
    settings: Callable[..., str],
    tmp_path: Path,
    judge_server: JudgeServer,
    slack_server: SlackServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Published and told of after the deadline; a rerun asks only for the missing rows."""
    judge_server.faults(good_for=GOOD, **FAULTS[fault])
    path = settings()
    start = time.monotonic()
    with pytest.raises(CoverageShort):
        run(path)
    assert time.monotonic() - start < 120  # and not for ever
    (summary,) = published(path).metrics
    scored = summary.scored
    assert scored <= GOOD
    assert summary.status["judge_failed"] == ROWS - scored
    assert (tmp_path / f"store/dashboard/{NIGHT}/index.html").exists()
    assert "Context recall" in json.dumps(slack_server.delivered)

    judge_server.reset()
    forget(monkeypatch)
    (summary,) = run(settings(deadline="20h")).metrics  # however slow this machine is
    assert summary.scored == ROWS
    assert judge_server.stats()["requests"] <= ROWS - scored


def test_a_deadline_that_passed_is_told(
    settings: Callable[..., str], judge_server: JudgeServer
) -> None:
    """With its moment, and what a rerun does, on the night's page and in its record."""
    judge_server.faults(good_for=GOOD, exhausted_for="8h0m0s")
    path = settings(deadline="3s")
    with pytest.raises(CoverageShort):
        run(path)
    (told,) = [problem for problem in published(path).problems if "deadline" in problem]
    assert (
        "has passed: rows without a verdict are judge_failed, and a rerun requests only these"
        in told
    )


def test_processes_keep_the_flows_deadline(
    settings: Callable[..., str], judge_server: JudgeServer
) -> None:
    """It is an absolute time, which goes with each part."""
    judge_server.faults(good_for=GOOD, then="hang")
    path = settings(runner="processes", deadline="6s")
    start = time.monotonic()
    with pytest.raises(CoverageShort):
        run(path)
    assert time.monotonic() - start < 120
    (summary,) = published(path).metrics
    assert summary.status["judge_failed"] == ROWS - summary.scored
    assert any("deadline" in problem for problem in published(path).problems)


@pytest.mark.parametrize(("ago", "left"), [(0, 20), (5, 15), (21, 20)])
def test_a_crash_gives_a_run_no_more_time(
    monkeypatch: pytest.MonkeyPatch, ago: int, left: int
) -> None:
    """But one that is started again after its deadline goes on for as long from then."""
    now = datetime.now(UTC)
    monkeypatch.setattr(attempts, "first_start", lambda: now - timedelta(hours=ago))
    until = attempts.run_deadline(timedelta(hours=20))
    assert abs(until - now - timedelta(hours=left)) < timedelta(minutes=5)
