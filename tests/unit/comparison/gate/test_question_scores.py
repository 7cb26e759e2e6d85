"""Gates over a change of judge: the serving build is known by nights of the old judge alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from ragmetrics.comparison import run_gate
from ragmetrics.pipeline import run_night
from ragmetrics.records import Gate, IndexBuild, JudgeBridge
from ragmetrics.storage import Runs, open_store
from tests.builders import judge_at
from tests.fakes.build_logs import damaged, gate_settings, golden, write_build
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

ROWS = golden(120)
METRIC = "context_relevance"
ChangedGate: TypeAlias = Callable[..., tuple[Gate, JudgeBridge]]


@pytest.fixture
def gate(tmp_path: Path, judge_server: JudgeServer) -> ChangedGate:
    """The verdict by a stricter judge on a build with some rows, after a night whose rows both
    judges scored.
    """

    def settings(judge: Any) -> Any:
        rules = {"rules": [{"metric": METRIC, "max_drop": 0.07}]}
        logs = {"logs": f"{tmp_path}/builds/{{build}}.jsonl"}
        return gate_settings(tmp_path, judge=judge, metrics=[METRIC], gate={**logs, **rules})

    def night(judge: Any, day: int, rows: list[dict[str, Any]]) -> None:
        write_jsonl(tmp_path / f"logs/{NIGHT + timedelta(day)}.jsonl", rows)
        run_night(settings(judge), NIGHT + timedelta(day))

    def decide(build: list[dict[str, Any]], both: int = len(ROWS)) -> tuple[Gate, JudgeBridge]:
        old = judge_at(judge_server)
        night(old, 0, [{**row, "index_build": "b1"} for row in ROWS])
        judge_server.faults(strict=1.0)
        new = judge_at(judge_server, model="new", replaces=old)
        night(new, 1, ROWS[:both])
        write_build(tmp_path, "b2", build)
        asked = IndexBuild(dataset="towers", build="b2", serving="b1")
        bridge = Runs(open_store(settings(new))).nights(last=1)[0].bridge
        assert bridge
        return run_gate(settings(new), asked), bridge

    return decide


def test_a_healthy_build_is_promoted_over_a_change_of_judge(gate: ChangedGate) -> None:
    """The new judge scores every row lower: without the offset, each build would be held."""
    found, bridge = gate(ROWS)
    assert found.verdict == "promote"
    (metric,), (offset,) = found.metrics, bridge.offsets
    assert offset.offset < -0.1
    assert metric.drop == pytest.approx(0.0, abs=1e-9)
    assert metric.high and metric.high >= offset.high - offset.offset


def test_a_damaged_build_is_held_over_a_change_of_judge(gate: ChangedGate) -> None:
    """A third of its questions lost their passages."""
    found, _ = gate(damaged(ROWS, 0.4, seed=1))
    assert found.verdict == "hold"


def test_too_few_questions_of_both_judges_are_no_pass(gate: ChangedGate) -> None:
    """Fifteen have verdicts of both, and the reason says so."""
    found, _ = gate(ROWS, both=15)
    assert (found.verdict, found.metrics) == ("inconclusive", [])
    assert found.reasons[0].endswith(
        f"; the judge openai:gpt-6-luna was replaced on {NIGHT + timedelta(1)}: {METRIC}: 15 "
        "questions have verdicts of both judges, and 20 are needed"
    )


def test_judges_of_another_order_are_no_pass(
    gate: ChangedGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the build: here two whose rank correlation is below the limit."""
    monkeypatch.setattr("ragmetrics.scoring.judge_bridge.LEAST_CORRELATION", 1.1)
    found, _ = gate(ROWS)
    assert (found.verdict, found.metrics) == ("inconclusive", [])
    assert "the rank correlation of both judges is" in found.reasons[0]
