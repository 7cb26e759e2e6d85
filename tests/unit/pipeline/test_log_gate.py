"""A gate of two logs: its metrics by what the rows have, and sentences on bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import make_settings
from ragmetrics.errors import InputError
from ragmetrics.pipeline import gate_logs
from ragmetrics.records import Gate
from tests.fakes.logs import make_rows, write_jsonl

BY_IDS = ["hit_rate", "id_recall", "mrr"]
BY_JUDGE = ["context_relevance", "context_recall"]


def rows_with_ids(good: float = 1.0, count: int = 120) -> list[dict[str, Any]]:
    """Rows of which a share retrieves the expected passage."""
    rows = make_rows(count, good=good)
    for number, row in enumerate(rows):
        expected = "height of tower" in row["retrieved_contexts"][0]
        row["retrieved_context_ids"] = [f"tower-{number}" if expected else "museums", "ferries"]
        row["reference_context_ids"] = [f"tower-{number}"]
    return rows


def verdict(
    folder: Path, before: list[dict[str, Any]], after: list[dict[str, Any]], **more: Any
) -> Gate:
    """The gate of two logs, without settings."""
    logs = (
        write_jsonl(folder / f"{name}.jsonl", rows)
        for name, rows in (("before", before), ("after", after))
    )
    settings = make_settings({"store": str(folder / "store"), **more.pop("settings", {})})
    return gate_logs(settings, *map(str, logs), **more)


@pytest.mark.parametrize(("good", "expected"), [(1.0, "promote"), (0.8, "hold")])
def test_logs_with_ids_need_no_judge(tmp_path: Path, good: float, expected: str) -> None:
    """Hits, recall and rank by ids decide, and nothing is stored."""
    gate = verdict(tmp_path, rows_with_ids(), rows_with_ids(good))
    assert gate.verdict == expected
    assert [metric.metric for metric in gate.metrics] == BY_IDS
    assert (gate.serving, gate.build) == (gate.serving_logs, gate.logs)
    assert not (tmp_path / "store").exists()


def test_with_a_judge_the_judged_metrics_decide_too(tmp_path: Path) -> None:
    """After those by ids."""
    gate = verdict(tmp_path, rows_with_ids(), rows_with_ids(), judged=True)
    assert [metric.metric for metric in gate.metrics] == BY_IDS + BY_JUDGE


def test_without_ids_the_judge_of_the_settings_decides(tmp_path: Path) -> None:
    """A note has the field, and the option, that would be better."""
    gate = verdict(tmp_path, make_rows(120), make_rows(120, good=0.7))
    assert (gate.verdict, [metric.metric for metric in gate.metrics]) == ("hold", BY_JUDGE)
    assert "logs with reference_context_ids need none" in gate.judge.note


def test_metrics_and_limit_may_be_chosen(tmp_path: Path) -> None:
    """Others than the settings score, with a limit on each."""
    gate = verdict(tmp_path, rows_with_ids(), rows_with_ids(0.9), metrics=["ndcg"], max_drop=0.3)
    assert [(one.metric, one.max_drop) for one in gate.metrics] == [("ndcg", 0.3)]
    assert gate.verdict == "promote"


def test_rules_of_the_settings_apply(tmp_path: Path) -> None:
    """Alone, as for a build."""
    rules = {"gate": {"rules": [{"metric": "context_recall", "max_drop": 0.1}]}}
    gate = verdict(tmp_path, rows_with_ids(), rows_with_ids(), settings=rules, judged=True)
    assert [(one.metric, one.max_drop) for one in gate.metrics] == [("context_recall", 0.1)]


def test_few_questions_are_inconclusive(tmp_path: Path) -> None:
    """With the number of questions that would decide."""
    gate = verdict(tmp_path, rows_with_ids(count=25), rows_with_ids(count=25)[::-1])
    assert gate.verdict == "promote", "equal rows pass, however few"
    changed = [
        {**row, "retrieved_contexts": row["retrieved_contexts"] * 2} for row in make_rows(25)
    ]
    gate = verdict(tmp_path, make_rows(25), changed)
    assert gate.verdict == "inconclusive"
    assert gate.further


def test_each_log_may_have_its_own_layout(tmp_path: Path) -> None:
    """A preset is recognised log by log."""
    keys = {"user_input": "question", "retrieved_contexts": "contexts", "reference": "ground_truth"}
    ragas = [{keys.get(name, name): value for name, value in row.items()} for row in make_rows(120)]
    gate = verdict(tmp_path, ragas, make_rows(120, good=0.7))
    assert (gate.verdict, gate.metrics[0].questions) == ("hold", 120)


def test_logs_that_share_no_question_are_an_error(tmp_path: Path) -> None:
    """It shows a question of each, so that a wrong field is seen."""
    others = [{**row, "user_input": f"Other {row['user_input']}"} for row in make_rows(30)]
    with pytest.raises(
        InputError, match=r"share no question: .*before.jsonl asks 'What is .*Other"
    ):
        verdict(tmp_path, make_rows(30), others)


def test_questions_that_are_missing_after_keep_it_from_passing(tmp_path: Path) -> None:
    """A larger share than `max_missing` may be those that fail."""
    gate = verdict(tmp_path, rows_with_ids(), rows_with_ids()[:90])
    assert gate.verdict == "inconclusive"
    assert gate.reasons == [
        f"hit_rate, id_recall, mrr: 30 of 120 questions of {tmp_path}/before.jsonl cannot be "
        "compared (30 absent); --max-missing allows 2.0%"
    ]


def test_logs_that_share_a_single_question_are_not_said_to_share_none(tmp_path: Path) -> None:
    """A verdict takes two questions; the reason is how many are missing."""
    gate = verdict(tmp_path, rows_with_ids(), rows_with_ids()[:1])
    assert gate.verdict == "inconclusive"
    assert "fewer than two questions are scored on both sides" in gate.reasons[0]


@pytest.mark.parametrize(
    ("after", "said"), [([], "after.jsonl: the logs hold no row"), (None, "log of both sides")]
)
def test_an_empty_log_and_the_same_log_are_errors(
    tmp_path: Path, after: list[dict[str, Any]] | None, said: str
) -> None:
    """One sentence on the log."""
    place = str(write_jsonl(tmp_path / "before.jsonl", rows_with_ids()))
    other = place if after is None else str(write_jsonl(tmp_path / "after.jsonl", after))
    with pytest.raises(InputError, match=said):
        gate_logs(make_settings({}), place, other)


def test_a_log_of_an_unknown_layout_is_asked_for_its_keys(tmp_path: Path) -> None:
    """With the line for the settings, as `ragmetrics check` has it."""
    rows = [
        {"frage": row["user_input"], "treffer": row["retrieved_contexts"]} for row in make_rows(9)
    ]
    place = str(write_jsonl(tmp_path / "before.jsonl", rows))
    other = str(write_jsonl(tmp_path / "after.jsonl", rows_with_ids()))
    with pytest.raises(InputError, match=r"before.jsonl: Unknown log format\.[^$]*columns: "):
        gate_logs(make_settings({}), place, other)


def test_chosen_metrics_that_no_row_fits_are_an_error(tmp_path: Path) -> None:
    """With the fields by which no judge is needed."""
    with pytest.raises(InputError, match="log reference_context_ids"):
        verdict(tmp_path, make_rows(30), make_rows(30), settings={"metrics": ["faithfulness"]})
