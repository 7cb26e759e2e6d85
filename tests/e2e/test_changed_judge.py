"""A chat judge that replaces the lexical one: no alarm by the change, one by a real drop."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings
from ragmetrics.pipeline import compare, run_night
from ragmetrics.records import Finding, Manifest
from tests.builders import judge_at, night_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

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


@pytest.fixture
def new_judge(tmp_path: Path, judge_server: JudgeServer) -> dict[str, Any]:
    """A strict chat judge, after ten nights by the lexical one."""
    for day in range(NIGHTS):
        night_of(tmp_path, day, "lexical")
    judge_server.faults(strict=1.0)
    return judge_at(judge_server, replaces="lexical", bridge="3 nights", bridge_rows=60)


def of_rule(manifest: Manifest) -> Finding:
    """What the rule says."""
    (finding,) = [finding for finding in manifest.findings if finding.kind == "metric"]
    return finding


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
    assert f"{METRIC} is {bridge.offsets[0].offset:+.3f}" in page.read_text()
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
