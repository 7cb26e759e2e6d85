"""A chat judge that replaces the lexical one: no alarm by the change, one by a real drop."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.pipeline import compare, run_night
from ragmetrics.records import Finding, Manifest
from tests.builders import judge_at, night_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

METRIC = "context_relevance"
NIGHTS = 10
RULE = {"metric": METRIC, "max_drop": 0.05}


def night_of(folder: Path, day: int, judge: Any, good: float = 0.8) -> Manifest:
    """A night of 120 rows, of which a share has the answer, by a judge."""
    night = NIGHT + timedelta(day)
    rows = make_rows(120, good=good, night=night)
    write_jsonl(folder / f"logs/dt={night}/log.jsonl", rows)
    return run_night(settings_of(folder, judge), night).manifest


def settings_of(folder: Path, judge: Any) -> Settings:
    """Settings of nights by a judge."""
    return night_settings(folder, metrics=[METRIC], judge=judge, shards=2, rules=[RULE])


@pytest.fixture(scope="module")
def ten_nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store after ten nights by the lexical judge."""
    folder = tmp_path_factory.mktemp("ten")
    for day in range(NIGHTS):
        night_of(folder, day, "lexical")
    return folder / "store"


@pytest.fixture
def new_judge(tmp_path: Path, ten_nights: Path, judge_server: JudgeServer) -> dict[str, Any]:
    """A strict chat judge, after ten nights by the lexical one."""
    shutil.copytree(ten_nights, tmp_path / "store")
    judge_server.faults(strict=1.0)
    return judge_at(judge_server, replaces="lexical", bridge="3 nights", bridge_rows=60)


def of_rule(manifest: Manifest) -> Finding:
    """What the rule says."""
    (finding,) = [finding for finding in manifest.findings if finding.kind == "metric"]
    return finding


@pytest.mark.pages
def test_an_unchanged_product_fires_no_alert_by_a_change_of_judge(
    tmp_path: Path, new_judge: dict[str, Any]
) -> None:
    """Two nights after the change; the pages say that the judge changed, and by how much."""
    nights = [night_of(tmp_path, NIGHTS + day, new_judge) for day in range(2)]
    assert [of_rule(night).state for night in nights] == ["ok", "ok"]
    assert all(of_rule(night).compared for night in nights)
    bridge = nights[-1].bridge
    assert bridge
    assert bridge.offsets[0].offset < -0.1
    page = tmp_path / f"store/dashboard/{nights[-1].date}/index.html"
    assert f"the new judge scores Context relevance (graded) {bridge.offsets[0].offset:+.3f}" in (
        page.read_text()
    )
    overview = (tmp_path / "store/dashboard/index.html").read_text()
    assert "judge changed, nights before moved by" in overview


def test_a_drop_in_the_week_of_the_change_fires(tmp_path: Path, new_judge: dict[str, Any]) -> None:
    """In the first night of the new judge already; `compare` finds it too."""
    first = night_of(tmp_path, NIGHTS, new_judge, good=0.5)
    assert of_rule(first).state == "firing"
    settings = settings_of(tmp_path, new_judge)
    (compared,) = compare(
        str(first.date - timedelta(1)), str(first.date), settings=settings
    ).metrics
    assert not compared.reason
    assert compared.high is not None
    assert compared.high < 0


def test_where_the_judges_do_not_compare_compare_says_why(
    tmp_path: Path, new_judge: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no number is shown."""
    monkeypatch.setattr("ragmetrics.scoring.judge_bridge.LEAST_CORRELATION", 1.1)
    first = night_of(tmp_path, NIGHTS, new_judge)
    days = str(first.date - timedelta(1)), str(first.date)
    why = rf"the judge lexical was replaced on {first.date}: {METRIC}: the rank correlation"
    with pytest.raises(InputError, match=why):
        compare(*days, settings=settings_of(tmp_path, new_judge))


def test_of_two_changes_in_a_week_the_last_one_is_corrected_for(
    tmp_path: Path, judge_server: JudgeServer, new_judge: dict[str, Any]
) -> None:
    """Nights of the first judge are left out, and the finding says so; a drop still fires."""
    second = [night_of(tmp_path, NIGHTS + day, new_judge) for day in range(2)]
    third = judge_at(judge_server, model="third", replaces=new_judge, bridge_rows=60)
    judge_server.faults(strict=0.0)
    last = night_of(tmp_path, NIGHTS + 2, third)
    assert last.bridge
    assert [offset.replaced for offset in last.bridge.offsets] == [
        second[-1].metrics[0].fingerprint
    ]
    assert of_rule(last).state == "ok"
    assert (of_rule(last).compared, of_rule(last).baseline_label) == (True, "2 nights before")
    told = f"nights before {second[0].date}, by lexical, are not compared"
    assert told in next(one.message for one in last.findings if one.kind == "judge_change")
    assert of_rule(night_of(tmp_path, NIGHTS + 3, third, good=0.5)).state == "firing"


def test_a_judge_that_comes_back_begins_another_bridge(
    tmp_path: Path, judge_server: JudgeServer, new_judge: dict[str, Any]
) -> None:
    """Its first one, to the judge before, says nothing of the one between."""
    judge = {**new_judge, "bridge": "1 night"}
    first = night_of(tmp_path, NIGHTS, judge)
    other = judge_at(judge_server, model="other", replaces=judge, bridge_rows=60)
    judge_server.faults(strict=0.0)
    between = night_of(tmp_path, NIGHTS + 1, other)
    judge_server.faults(strict=1.0)
    back = night_of(
        tmp_path, NIGHTS + 2, {**judge, "replaces": judge_at(judge_server, model="other")}
    )
    assert back.bridge and first.bridge
    assert [one.replaced for one in back.bridge.offsets] == [between.metrics[0].fingerprint]
    assert back.bridge.since == back.date
    assert of_rule(back).state == "ok"
    (told,) = [one.message for one in back.findings if one.kind == "judge_change"]
    assert f"nights before {first.date}, by lexical, are not compared" in told
