"""Gates from logs to verdict, without Prefect: real logs, a real store, the lexical judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.comparison import gate_run_settings, load_gate
from ragmetrics.storage import open_store
from tests.fakes.build_logs import METRICS, damaged, gate_settings, golden, healthy, write_build
from tests.fakes.gated_builds import ROWS, gate, paths, two_builds, without_passages
from tests.fakes.logs import write_jsonl


@pytest.mark.parametrize("count", [24, 28])
def test_a_build_without_a_quarter_of_its_documents_is_held(tmp_path: Path, count: int) -> None:
    """By fewer than 30 golden questions too, at the default settings."""
    rows = golden(count)
    write_build(tmp_path, "b1", rows)
    write_build(tmp_path, "b2", damaged(rows, 0.25, seed=1))
    found = gate(gate_settings(tmp_path))
    assert found.verdict == "hold"
    assert all(metric.p_value and metric.p_value < 0.05 for metric in found.metrics)


def test_golden_passages_that_are_gone_from_the_index_hold_a_build(tmp_path: Path) -> None:
    """Where no metric does: its rule allows a drop as large."""
    found = gate(without_passages(tmp_path, 0.9))
    assert found.verdict == "hold"
    assert [metric.verdict for metric in found.metrics] == ["promote"]
    assert found.reasons[0].startswith("8 of 28 questions lost a passage that they need: probably ")


def test_a_damaged_build_is_held(tmp_path: Path) -> None:
    """With what fell, from what to what, and the questions that fell furthest."""
    settings = two_builds(tmp_path, damaged(ROWS, 0.3, seed=1))
    found = gate(settings)
    assert (found.verdict, found.serving, found.further) == ("hold", "b1", None)
    recall = next(metric for metric in found.metrics if metric.metric == "context_recall")
    assert recall.verdict == "hold"
    assert recall.questions == 60
    assert recall.drop == pytest.approx((recall.before or 0) - (recall.after or 0))
    assert any(reason.startswith("context_recall fell from 0.9") for reason in found.reasons)
    worst = found.fallen[0]
    assert worst.before > worst.after
    assert worst.user_input.startswith("What is the height of tower")
    assert load_gate(open_store(settings), "b2") == found


def test_a_build_with_the_same_passages_passes_and_says_so(tmp_path: Path) -> None:
    """However few questions: nothing changed. In other rows only ids and answers differ."""
    rows = golden(24)
    write_build(tmp_path, "b1", rows)
    write_build(tmp_path, "b2", [{**row, "id": f"x{row['id']}", "response": "?"} for row in rows])
    found = gate(gate_settings(tmp_path))
    assert (found.verdict, found.further) == ("promote", None)
    assert found.reasons == [
        "the retrieval is unchanged: all 24 rows have the same passages",
        "context_relevance: no change over the same 24 questions",
        "context_recall: no change over the same 24 questions",
    ]


def test_a_build_with_another_passage_needs_more_questions(tmp_path: Path) -> None:
    """An equal score of each question is no proof that the rest of the index is as good."""
    rows = golden(24)
    write_build(tmp_path, "b1", rows)
    other = {**rows[0], "retrieved_context_ids": ["x" for _ in rows[0]["retrieved_contexts"]]}
    write_build(tmp_path, "b2", [other, *rows[1:]])
    found = gate(gate_settings(tmp_path))
    assert found.verdict == "inconclusive"
    assert not any("unchanged" in reason for reason in found.reasons)


def test_a_healthy_build_is_promoted(tmp_path: Path) -> None:
    """Though some rows moved a little both ways."""
    write_build(tmp_path, "b1", golden())
    write_build(tmp_path, "b2", healthy(golden(), seed=1))
    found = gate(gate_settings(tmp_path))
    assert found.verdict == "promote"
    assert [metric.metric for metric in found.metrics] == METRICS
    assert all(one.upper is not None and one.upper < one.max_drop for one in found.metrics)


def test_equal_logs_have_equal_scores(tmp_path: Path) -> None:
    """The lexical judge weighs words by a log's own counts; both sides are weighed alike, so
    that rows which stayed the same score the same beside rows that did not.
    """
    other = damaged(ROWS, 0.5, seed=3)
    settings = two_builds(tmp_path, other)
    found = gate(settings)
    same = {row["user_input"] for row, new in zip(ROWS, other, strict=True) if row == new}
    assert found.fallen
    assert not same & {one.user_input for one in found.fallen}
    run = gate_run_settings(settings)
    counts = {(open_store(run).read(path)) for path in paths(run, "rows") if "corpus" in path}
    assert len(counts) == 1


def test_rows_without_contexts_count_as_nothing_found(tmp_path: Path) -> None:
    """They score 0: no question is missing for it."""
    lost = [{**row, "retrieved_contexts": []} for row in ROWS[:30]]
    found = gate(two_builds(tmp_path, [*lost, *ROWS[30:]]))
    assert (found.verdict, found.missing) == ("hold", 0)


def test_few_questions_are_inconclusive_with_the_number_that_lacks(tmp_path: Path) -> None:
    """Twelve tell nothing, however equal."""
    write_build(tmp_path, "b1", ROWS[:12])
    write_build(tmp_path, "b2", ROWS[:12])
    found = gate(gate_settings(tmp_path))
    assert found.verdict == "inconclusive"
    assert found.further is not None
    assert found.further >= 18
    assert any("12 questions are scored on both sides, 20 needed" in why for why in found.reasons)


# What must not be promoted


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ([], "hold no row that can be read"),
        (["{", "not JSON"], "2 quarantined, most often: "),
        ([{**row, "index_build": "b7"} for row in ROWS], "say that they are of build b7"),
        (None, "no log at "),
    ],
)
def test_a_log_that_is_no_evidence_is_no_pass(
    tmp_path: Path, log: list[Any] | None, reason: str
) -> None:
    """Empty, unreadable, of another build or not there: inconclusive, and it says why."""
    write_build(tmp_path, "b1", ROWS)
    if log is not None:
        write_jsonl(tmp_path / "builds" / "b2.jsonl", log)
    settings = gate_settings(tmp_path)
    found = gate(settings)
    assert (found.verdict, found.further, found.metrics) == ("inconclusive", None, [])
    assert found.reasons[0].startswith("build b2: ")
    assert reason in found.reasons[0]
    assert load_gate(open_store(settings), "b2") == found


def test_missing_questions_are_no_pass(tmp_path: Path) -> None:
    """Three of sixty are absent, where one may be; a quarantined row is absent too."""
    broken = {**ROWS[57], "retrieved_contexts": "not a list"}
    found = gate(two_builds(tmp_path, [*ROWS[:57], broken]))
    assert found.verdict == "inconclusive"
    assert (found.missing, found.missing_why, found.quarantined) == (3, {"absent": 3}, 1)
    assert "3 of 60 questions of build b1 cannot be compared" in found.reasons[0]


def test_a_log_that_is_cut_short_is_no_pass(tmp_path: Path) -> None:
    """However good the rows before the cut are."""
    settings = two_builds(tmp_path, ROWS, gate={"logs": f"{tmp_path}/builds/{{build}}.jsonl.gz"})
    whole = write_jsonl(tmp_path / "builds" / "b1.jsonl.gz", golden(400))
    data = whole.read_bytes()
    (tmp_path / "builds" / "b2.jsonl.gz").write_bytes(data[: len(data) - 40])
    found = gate(settings)
    assert found.verdict == "inconclusive"
    assert "is read in part" in found.reasons[0]


def test_a_build_is_not_held_against_its_own_log(tmp_path: Path) -> None:
    """The log of b1 given as that of b2 would pass for ever."""
    settings = two_builds(tmp_path, ROWS)
    rows = [{name: value for name, value in row.items() if name != "index_build"} for row in ROWS]
    place = write_jsonl(tmp_path / "builds" / "b1.jsonl", rows)
    found = gate(settings, logs=str(place))
    assert found.verdict == "inconclusive"
    assert "is the log of both sides" in found.reasons[0]


def test_a_metric_that_lost_its_reference_is_no_pass(tmp_path: Path) -> None:
    """What could be scored in the serving build must be scored in the new one."""
    bare = [{name: row[name] for name in row if name != "reference"} for row in ROWS]
    found = gate(two_builds(tmp_path, bare))
    assert found.verdict == "inconclusive"
    assert found.missing_why == {"not_applicable": 60}


def test_a_default_rule_is_held_only_where_it_can_be(tmp_path: Path) -> None:
    """Without references in either log, the verdict is that of context_relevance; it is said."""
    bare = [{name: row[name] for name in row if name != "reference"} for row in golden()]
    write_build(tmp_path, "b1", bare)
    write_build(tmp_path, "b2", bare)
    found = gate(gate_settings(tmp_path))
    assert found.verdict == "promote"
    assert [metric.metric for metric in found.metrics] == ["context_relevance"]
    assert "context_recall is not compared: no row of build b1 has what it needs" in found.reasons
