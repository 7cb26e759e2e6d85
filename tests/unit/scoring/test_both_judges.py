"""Rows that a replaced judge scores too: from the store, by asking, or not at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.errors import JudgeRefused, StoreError
from ragmetrics.pipeline import run_night
from ragmetrics.records import JudgeBridge, Manifest, deadline_at, deadline_in_use, use_deadline
from ragmetrics.scoring import both_judges
from ragmetrics.storage import RunRef, open_store
from tests.builders import judge_at, night_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

METRIC, RELEVANCY = "context_relevance", "response_relevancy"


def night_of(
    folder: Path, day: int, judge: Any, *, first: int = 0, without: str = "", **more: Any
) -> Manifest:
    """A night of 40 rows from some row on, without one of their fields."""
    night = NIGHT + timedelta(day)
    rows = make_rows(first + 40, good=0.5, night=night)[first:]
    rows = [{key: value for key, value in row.items() if key != without} for row in rows]
    write_jsonl(folder / f"logs/dt={night}/log.jsonl", rows)
    settings = night_settings(folder, **{"metrics": [METRIC], "judge": judge, "shards": 2, **more})
    return run_night(settings, night).manifest


def bridge_of(night: Manifest) -> JudgeBridge:
    """The bridge of a night."""
    assert night.bridge
    return night.bridge


def lexical(old: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The lexical judge, which replaces one at a server."""
    return {"name": "lexical", "replaces": old, **more}


@pytest.fixture
def old(tmp_path: Path, judge_server: JudgeServer) -> dict[str, Any]:
    """A judge at a server, after a night by it."""
    judge = judge_at(judge_server)
    night_of(tmp_path, 0, judge)
    judge_server.reset()
    return judge


def test_verdicts_of_the_store_cost_nothing(
    tmp_path: Path, judge_server: JudgeServer, old: dict[str, Any]
) -> None:
    """The same rows again: both judges score them, and no request is sent."""
    night = night_of(tmp_path, 1, lexical(old))
    assert bridge_of(night).offsets[0].questions == 40
    assert night.bridged
    assert (night.bridged.requests, night.bridged.answered_from_store) == (0, 80)
    assert judge_server.stats()["requests"] == 0


def test_of_other_rows_the_old_judge_is_asked_about_a_sample(
    tmp_path: Path, old: dict[str, Any]
) -> None:
    """At most `bridge_rows`, and its usage is in no other figure."""
    night = night_of(tmp_path, 1, lexical(old, bridge_rows=25), first=100)
    assert bridge_of(night).offsets[0].questions == 25
    assert night.bridged
    assert night.bridged.requests == 50
    assert night.usage.requests == 0


def test_an_old_judge_has_the_also_of_today(tmp_path: Path, judge_server: JudgeServer) -> None:
    """A metric that only the second judge scores has no offset, and costs no other metric its."""
    also = judge_at(judge_server, model="chat")
    first = judge_at(judge_server, "decision", model="a")
    metrics = [METRIC, "context_entity_recall"]
    night_of(tmp_path, 0, first | {"also": also}, metrics=metrics)
    second = judge_at(judge_server, "decision", model="b", also=also, replaces=first)
    night = night_of(tmp_path, 1, second, metrics=metrics)
    assert [one.metric for one in bridge_of(night).offsets] == [METRIC]
    assert bridge_of(night).offsets[0].questions == 40


def test_a_judge_that_is_gone_gives_its_stored_verdicts(
    tmp_path: Path, judge_server: JudgeServer, old: dict[str, Any]
) -> None:
    """Half of the rows were judged by it before; the page says that it refuses."""
    judge_server.faults(fail={"401": 1.0})
    night = night_of(tmp_path, 1, lexical(old), first=20)
    (offset,) = bridge_of(night).offsets
    assert offset.questions == 20
    assert not offset.apart
    assert "refused the key" in bridge_of(night).problem
    (text,) = [one.message for one in night.findings if one.kind == "judge_change"]
    assert "the old judge gave no further verdicts" in text


def test_a_budget_that_the_night_used_up_leaves_nothing_for_the_old_judge(
    tmp_path: Path, judge_server: JudgeServer, old: dict[str, Any]
) -> None:
    """No request beyond the limit."""
    new = judge_at(judge_server, model="new", replaces=old)
    night = night_of(tmp_path, 1, new, first=100, budget={"max_requests": 80})
    assert night.usage.requests == 80
    assert bridge_of(night).offsets == []


def test_a_night_that_is_published_again_asks_nothing(
    tmp_path: Path, judge_server: JudgeServer, old: dict[str, Any]
) -> None:
    """The rows of both judges are in the store."""
    night = night_of(tmp_path, 1, lexical(old), first=100)
    files = open_store(night_settings(tmp_path, metrics=[METRIC]))
    assert files.exists(RunRef.of(night).beside_rows("bridge"))
    judge_server.reset()
    settings = night_settings(tmp_path, metrics=[METRIC], judge=lexical(old), shards=2)
    assert run_night(settings, night.date).manifest.bridge == night.bridge
    assert judge_server.stats()["requests"] == 0


def test_without_earlier_nights_of_the_old_judge_nobody_is_asked(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """There is nothing to go on with."""
    night = night_of(tmp_path, 1, lexical(judge_at(judge_server)))
    assert night.bridge is None
    assert judge_server.stats()["requests"] == 0


def test_after_its_nights_the_bridge_stays_without_asking(
    tmp_path: Path, judge_server: JudgeServer, old: dict[str, Any]
) -> None:
    """Also where `replaces` is gone from the settings."""
    first = night_of(tmp_path, 1, lexical(old, bridge="1 night"))
    judge_server.reset()
    second = night_of(tmp_path, 2, lexical(old, bridge="1 night"), first=100)
    third = night_of(tmp_path, 3, "lexical", first=200)
    assert second.bridge == third.bridge == first.bridge
    assert judge_server.stats()["requests"] == 0


@pytest.mark.parametrize("error", [JudgeRefused("no key"), StoreError("the store is down")])
@pytest.mark.parametrize("broken", ["metric_fingerprints", "SecondScoring.pairs", "_pooled"])
def test_an_old_judge_that_cannot_be_made_costs_no_night(
    tmp_path: Path,
    old: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    broken: str,
) -> None:
    """The night is published, and says why it has no bridge."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(f"ragmetrics.scoring.judge_bridge.{broken}", fail)
    night = night_of(tmp_path, 1, lexical(old))
    assert bridge_of(night).offsets == []
    assert bridge_of(night).problem == str(error)
    (text,) = [one.message for one in night.findings if one.kind == "judge_change"]
    assert text.endswith(f"the old judge gave no further verdicts: {error}")


@pytest.fixture
def without_key(
    tmp_path: Path, judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """A judge of OpenAI, after a night by it with embeddings; then its key is gone."""
    monkeypatch.setattr("ragmetrics.judges.base._OPENAI", judge_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    night_of(tmp_path, 0, {"name": "openai"}, metrics=[METRIC, RELEVANCY])
    monkeypatch.delenv("OPENAI_API_KEY")
    judge_server.reset()
    return {"name": "openai"}


def test_a_judge_without_any_key_gives_its_stored_verdicts(
    tmp_path: Path, judge_server: JudgeServer, without_key: dict[str, Any]
) -> None:
    """Its fingerprint needs no key: of the rows that recur, its replies are in the store."""
    bridge = bridge_of(night_of(tmp_path, 1, lexical(without_key), first=10))
    assert bridge.offsets[0].questions == 30
    assert not bridge.offsets[0].apart
    assert "OPENAI_API_KEY" in bridge.problem
    assert judge_server.stats()["requests"] == 0


def test_vectors_of_a_judge_without_key_come_from_the_store(
    tmp_path: Path, judge_server: JudgeServer, without_key: dict[str, Any]
) -> None:
    """A metric of embeddings goes on too."""
    new = judge_at(judge_server, model="new", replaces=without_key)
    night = night_of(tmp_path, 1, new, metrics=[RELEVANCY])
    assert bridge_of(night).offsets[0].questions == 40


def test_without_the_old_key_the_bridge_keeps_its_offset(
    tmp_path: Path, without_key: dict[str, Any]
) -> None:
    """On a night whose rows the old judge never saw, with the reason."""
    first = bridge_of(night_of(tmp_path, 1, lexical(without_key)))
    second = bridge_of(night_of(tmp_path, 2, lexical(without_key), first=100))
    assert second.offsets == first.offsets
    assert "OPENAI_API_KEY" in second.problem


def test_after_its_nights_the_old_judge_is_not_made(
    tmp_path: Path, old: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key may be gone: nothing is said of it."""
    first = night_of(tmp_path, 1, lexical(old, bridge="1 night"))
    monkeypatch.delenv("OPENAI_API_KEY")
    gone = lexical({"name": "openai"}, bridge="1 night")
    assert night_of(tmp_path, 2, gone).bridge == first.bridge


def test_a_metric_without_a_score_keeps_its_offset(
    tmp_path: Path, old: dict[str, Any], judge_server: JudgeServer
) -> None:
    """Rows without contexts on the last night of the bridge: the offset is that of the night
    before.
    """
    other = "context_recall"
    more = {"metrics": [METRIC, other]}
    night_of(tmp_path, 1, judge_at(judge_server), **more)
    first = bridge_of(night_of(tmp_path, 2, lexical(old), **more))
    assert {one.metric for one in first.offsets} == {METRIC, other}
    last = bridge_of(night_of(tmp_path, 3, lexical(old), without="reference", **more))
    assert len(last.runs) == 2
    kept = {one.metric: one for one in last.offsets}
    assert kept[other] == next(one for one in first.offsets if one.metric == other)


def test_a_silent_night_asks_nothing(
    tmp_path: Path, judge_server: JudgeServer, old: dict[str, Any]
) -> None:
    """A night that is older than the newest one and was published before: stored replies only."""
    night_of(tmp_path, 1, "lexical", first=100)
    night_of(tmp_path, 2, "lexical", first=100)
    judge_server.reset()
    again = night_of(tmp_path, 1, lexical(old), first=20)
    assert again.silent
    assert judge_server.stats()["requests"] == 0
    assert bridge_of(again).offsets[0].questions == 20


@pytest.mark.parametrize(("hours", "most"), [(None, 15), (4, 15), (0.1, 6)])
def test_the_old_judge_has_a_quarter_of_an_hour(
    tmp_path: Path,
    old: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    hours: float | None,
    most: int,
) -> None:
    """The manifest and the alerts wait no longer, whatever the deadline of the night."""
    left: list[float] = []

    async def note(_: object, __: int) -> dict[str, Any]:
        used = deadline_in_use()
        left.append(used.left if used else -1)
        return {}

    night = night_of(tmp_path, 1, "lexical")
    monkeypatch.setattr(both_judges.SecondScoring, "_score", note)
    settings = night_settings(tmp_path, metrics=[METRIC], judge=old)
    work = both_judges.SecondScoring(settings, open_store(settings), night, {}, [])
    until = datetime.now(UTC) + timedelta(hours=hours) if hours else None
    with use_deadline(deadline_at(until)):
        work.pairs(20)
    assert left == [pytest.approx(60 * most, abs=5)]


def test_a_metric_without_verdicts_of_both_judges_is_named(
    tmp_path: Path, judge_server: JudgeServer, old: dict[str, Any]
) -> None:
    """It is not compared with earlier nights."""
    judge_server.faults(fail={"401": 1.0})
    night = night_of(tmp_path, 1, lexical(old), first=100)
    assert bridge_of(night).unpaired == [METRIC]
