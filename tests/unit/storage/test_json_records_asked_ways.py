"""How endpoints were asked: fingerprints of scores cover it, those of cached replies do not."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from ragmetrics.config import JudgeSettings, Settings
from ragmetrics.judges.request_parameters import MOST_ROOM, RequestParameters
from ragmetrics.pipeline import Night, run_night
from ragmetrics.records import AskedWay, Manifest
from ragmetrics.scoring import metric_fingerprints
from ragmetrics.storage import AskedWays, Files
from tests.builders import judge_at, night_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import make_rows, write_jsonl

DAYS = [date(2026, 11, number) for number in (17, 18, 19)]


def nights(folder: Path, server: JudgeServer) -> Settings:
    """The settings of three nights, each with questions of its own."""
    for day in DAYS:
        rows = make_rows(6, night=day)
        new = [row | {"user_input": f"{row['user_input']} On {day}?"} for row in rows]
        write_jsonl(folder / f"logs/dt={day}/log.jsonl", new)
    return night_settings(folder, judge=judge_at(server, model="an-alias"))


def test_a_trend_breaks_where_a_model_is_asked_otherwise(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """An alias comes to mean a model that reasons: from then on scores have another fingerprint,
    also before the next night is asked.
    """
    settings = nights(tmp_path, judge_server)
    before = run_night(settings, DAYS[0]).manifest
    assert _prints(before) == metric_fingerprints(settings)
    judge_server.faults(efforts=["low", "high"])
    after, later = (run_night(settings, day).manifest for day in DAYS[1:])
    assert after.judge.fingerprint == later.judge.fingerprint != before.judge.fingerprint
    assert _prints(before) != _prints(after) == _prints(later) == metric_fingerprints(settings)
    assert after.metrics[0].scored == later.metrics[0].scored == 6


def test_replies_are_found_again(tmp_path: Path, judge_server: JudgeServer) -> None:
    """A night that is repeated after it was learned how to ask sends nothing."""
    judge_server.faults(efforts=["low", "high"])
    settings = nights(tmp_path, judge_server)
    first = run_night(settings, DAYS[0]).manifest
    asked = judge_server.stats()["requests"]
    staged = Night(settings).stage(DAYS[0])
    Night(settings).score(staged)
    again = Night(settings).publish(staged)
    assert judge_server.stats()["requests"] == asked
    assert _prints(again) == _prints(first)


def test_a_batch_begins_with_what_a_live_night_learned(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """No batch is refused for what was refused before; both nights have one trend."""
    judge_server.faults(efforts=["low", "high"])
    settings = nights(tmp_path, judge_server)
    live = run_night(settings, DAYS[0]).manifest
    by_batch = judge_at(judge_server, "openai-batch", model="an-alias", poll_seconds=0.01)
    batch = run_night(night_settings(tmp_path, judge=by_batch), DAYS[1]).manifest
    assert [len(batch.metrics), batch.metrics[0].scored] == [len(live.metrics), 6]
    assert sum(judge_server.batch_stats()["sizes"]) == batch.usage.requests
    assert not batch.usage.failures
    assert _prints(batch) == _prints(live)
    assert (
        "max_completion_tokens in place of max_tokens"
        in batch.changed_parameters["openai:an-alias"]
    )


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"max_completion_tokens": "many", "reasoning_effort": "huge"},
        {"max_completion_tokens": 1e300, "temperature": "x"},
        {"max_tokens": float("nan"), "temperature": 0.0},
        {"colour": "red"},
    ],
)
def test_a_damaged_way_costs_nothing(parameters: dict[str, str | float]) -> None:
    """Whatever a store says, a request can be sent, and learns what is refused."""
    chosen = JudgeSettings(name="openai", model="m")
    known = RequestParameters(chosen, AskedWay(way="", parameters=parameters))
    body = known.fit({"max_tokens": 10, "temperature": 0.1})
    assert {"max_tokens", "max_completion_tokens"} & body.keys()
    assert body.get("reasoning_effort") in (None, *JudgeSettings.efforts)
    assert 0 <= known.room <= MOST_ROOM


def test_a_model_that_is_asked_as_planned_is_in_no_file(tmp_path: Path) -> None:
    """Its scores keep the fingerprint of earlier versions; a way is forgotten when it ends."""
    store = Files(str(tmp_path))
    ways = AskedWays(store)
    ways.note("f1", None)
    ways.note("f1", AskedWay(way=""))
    assert ways.compared("f1") == "f1"
    assert not store.glob("judges/*")
    ways.note("f1", AskedWay(way="no temperature"))
    ways.note("f1", None)
    assert ways.compared("f1") != "f1"
    other = AskedWays(Files(str(tmp_path / "other")))
    ways.copy_to(other.store)
    assert other.compared("f1") == ways.compared("f1")
    ways.note("f1", AskedWay(way=""))
    assert ways.compared("f1") == "f1"


def _prints(manifest: Manifest) -> dict[str, str]:
    return {summary.metric: summary.fingerprint for summary in manifest.metrics}
