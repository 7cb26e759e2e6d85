"""Gates by paid judges, and settings under which a gate cannot be held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.comparison import load_gates
from ragmetrics.errors import InputError, JudgePending, JudgeRefused
from ragmetrics.storage import open_store
from tests.builders import judge_at
from tests.fakes.build_logs import METRICS, damaged, gate_settings, golden, write_build
from tests.fakes.clients import JudgeServer
from tests.fakes.gated_builds import ROWS, gate, loose, paths, two_builds

CHAT = "/v1/chat/completions"


def test_a_paid_judge_is_asked_once_for_what_both_builds_have(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Judgements are kept in the main store; a serving build that was compared keeps its scores."""
    judge = judge_at(judge_server, retries=0)
    settings = two_builds(tmp_path, ROWS, judge=judge, gate=loose(tmp_path))
    first = gate(settings)
    assert first.verdict == "promote"
    asked = judge_server.stats()["by_path"]
    assert asked == {CHAT: 60 * 2 + 60}  # two contexts of each row, and its reference
    assert any(path.startswith("judgements/") for path in paths(settings, "judgements"))
    write_build(tmp_path, "b3", ROWS)
    assert gate(settings, "b3", serving="b2").verdict == "promote"
    assert judge_server.stats()["by_path"] == asked


def test_a_judge_that_fails_on_some_rows_is_no_pass(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Rows without a verdict are missing: nobody knows how good they are."""
    judge = judge_at(judge_server, retries=0)
    long = "Ferries leave the harbour every hour. " * 500
    rows = [{**row, "retrieved_contexts": [*row["retrieved_contexts"], long]} for row in ROWS[:10]]
    settings = two_builds(tmp_path, [*rows, *ROWS[10:]], judge=judge)
    judge_server.faults(max_prompt_chars=10_000)
    found = gate(settings)
    assert (found.verdict, found.missing, found.missing_why) == (
        "inconclusive",
        10,
        {"judge_failed": 10},
    )
    assert "10 of 60 questions of build b1 cannot be compared" in found.reasons[0]


def test_a_repeat_asks_again_what_the_judge_failed_on(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """An outage of the judge is not the build's for ever; what was answered is not asked again."""
    judge = judge_at(judge_server, retries=0)
    long = "Ferries leave the harbour every hour. " * 500
    rows = [{**row, "retrieved_contexts": [*row["retrieved_contexts"], long]} for row in ROWS[:10]]
    settings = two_builds(tmp_path, [*rows, *ROWS[10:]], judge=judge)
    judge_server.faults(max_prompt_chars=10_000)
    assert gate(settings).missing_why == {"judge_failed": 10}
    judge_server.reset()
    found = gate(settings)
    assert (found.missing, found.metrics[0].questions) == (0, 60)
    asked = judge_server.stats()["by_path"][CHAT]
    assert 10 <= asked <= 20  # ten contexts, and the recall of ten rows
    gate(settings)
    assert judge_server.stats()["by_path"][CHAT] == asked


def test_a_repeat_asks_again_the_judge_of_a_panel_that_failed(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """As a night does: the rows have their scores, but by fewer judges than they should."""
    judges = [judge_at(judge_server, retries=0), "lexical"]
    long = "Ferries leave the harbour every hour. " * 500
    rows = [{**row, "retrieved_contexts": [*row["retrieved_contexts"], long]} for row in ROWS[:10]]
    settings = two_builds(tmp_path, [*rows, *ROWS[10:]], judges=judges)
    judge_server.faults(max_prompt_chars=10_000)
    assert gate(settings).missing == 0
    judge_server.reset()
    gate(settings)
    asked = judge_server.stats()["by_path"][CHAT]
    assert 10 <= asked <= 20  # ten contexts, and the recall of ten rows
    gate(settings)
    assert judge_server.stats()["by_path"][CHAT] == asked


def test_a_judge_that_refuses_leaves_the_gate_inconclusive(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """With the reason; without a key at all it does not begin."""
    judge = judge_at(judge_server, retries=0)
    settings = two_builds(tmp_path, ROWS, judge=judge)
    judge_server.faults(api_key="another")
    found = gate(settings)
    assert found.verdict == "inconclusive"
    assert found.problems


def test_a_judge_without_its_key_stops_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is written."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    settings = two_builds(tmp_path, ROWS, judge="openai")
    with pytest.raises(JudgeRefused):
        gate(settings)
    assert paths(settings, "gates") == []


def test_what_a_budget_leaves_out_is_not_missing(tmp_path: Path, judge_server: JudgeServer) -> None:
    """Those that are judged are a sample, the same in both builds; the verdict rests on them."""
    judge = judge_at(judge_server, retries=0)
    budget = {"max_requests": 260}
    rows = golden()
    write_build(tmp_path, "b1", rows)
    write_build(tmp_path, "b2", damaged(rows, 0.4, seed=1))
    found = gate(gate_settings(tmp_path, judge=judge, budget=budget))
    assert found.missing == 0
    assert all(30 <= metric.questions < 150 for metric in found.metrics)
    assert found.verdict == "hold"
    assert judge_server.stats()["by_path"][CHAT] <= 2 * 260


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rules": [{"metric": "faithfulness"}]}, "'faithfulness' is not scored; scored are: "),
        ({"rules": [{"metric": "noise_sensitivity"}]}, "lower is better"),
    ],
)
def test_a_rule_that_cannot_be_held_stops_the_gate(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    """A mistake in the settings, told before anything is judged."""
    settings = two_builds(
        tmp_path, ROWS, metrics=[*METRICS, "noise_sensitivity"], gate={**loose(tmp_path), **change}
    )
    with pytest.raises(InputError, match=message):
        gate(settings)


def test_a_build_of_another_data_set_stops_the_gate(tmp_path: Path) -> None:
    """Its questions are other ones."""
    with pytest.raises(InputError, match="is of the data set bridges"):
        gate(gate_settings(tmp_path), dataset="bridges")


def test_a_log_in_our_layout_is_read_whatever_the_nights_look_like(tmp_path: Path) -> None:
    """A replay writes rows, where the nights' logs are traces."""
    settings = two_builds(tmp_path, damaged(ROWS, 0.3, seed=1), preset="openinference")
    assert gate(settings).verdict == "hold"


def test_batches_that_take_long_leave_no_verdict(tmp_path: Path, judge_server: JudgeServer) -> None:
    """The gate goes on when it is run again."""
    judge = judge_at(judge_server, name="openai-batch", poll_seconds=1, wait_seconds=1)
    judge_server.batch_faults(delay_seconds=600)
    settings = two_builds(tmp_path, ROWS[:3], judge=judge)
    with pytest.raises(JudgePending):
        gate(settings)
    assert list(load_gates(open_store(settings))) == []
