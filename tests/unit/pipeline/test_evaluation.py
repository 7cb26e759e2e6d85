"""evaluate(): rows from anywhere, tables back, from scripts and notebooks alike."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

import ragmetrics
from ragmetrics.config import make_settings
from ragmetrics.errors import InputError, SettingsError
from ragmetrics.logs import inputs_of
from ragmetrics.records import LogRow
from tests.builders import judge_at
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.logs import make_rows, write_jsonl

METRICS = ["context_relevance", "context_recall"]
ROWS = make_rows(12, good=0.75)


class Dataset:
    """What ragas's EvaluationDataset and Hugging Face's Dataset have in common."""

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a table."""
        return pd.DataFrame(ROWS)


def mean(rows: Any, metric: str = "context_relevance", **how: Any) -> float:
    """The mean of one metric."""
    return float(ragmetrics.evaluate(rows, [metric], **how).summary().loc[metric, "mean"])


@pytest.mark.parametrize(
    "give",
    [
        lambda path: str(path),
        lambda path: path,
        lambda path: [path],
        lambda path: path.parent,
        lambda path: ROWS,
        lambda path: tuple(ROWS),
        lambda path: iter(ROWS),
        lambda path: pd.DataFrame(ROWS),
        lambda path: Dataset(),
    ],
    ids=["text", "path", "paths", "folder", "dicts", "tuple", "iterator", "frame", "to_pandas"],
)
def test_rows_come_from_anywhere(tmp_path: Path, give: Callable[[Path], Any]) -> None:
    """A path, several, dicts, a table: the same rows, the same numbers, the same ids."""
    path = write_jsonl(tmp_path / "logs" / "rows.jsonl", ROWS)
    result = ragmetrics.evaluate(give(path), METRICS)
    assert list(result.summary()["scored"]) == [12, 12]
    assert result.summary().loc["context_relevance", "mean"] == pytest.approx(mean(ROWS))
    assert set(result.scores()["id"]) == {row["id"] for row in ROWS}


def test_the_summary_has_one_line_per_metric() -> None:
    """With mean, interval, rows, questions and the count by status."""
    summary = ragmetrics.evaluate(ROWS, METRICS).summary()
    assert list(summary.index) == METRICS
    counts = ["scored", "questions", "status"]
    assert list(summary.columns) == ["mean", "low", "high", *counts, "spread", "agreement"]
    line = summary.loc["context_recall"]
    assert line["low"] <= line["mean"] <= line["high"]
    assert (line["questions"], line["status"]) == (12, {"scored": 12})


def test_the_scores_have_one_line_per_row_and_metric() -> None:
    """With the reason and the details of each."""
    scores = ragmetrics.evaluate(make_rows(4, reference=None), METRICS).scores()
    columns = ["id", "metric", "value", "status", "reason", "details", "tags"]
    assert list(scores.columns) == columns
    assert len(scores) == 8
    recall = scores[scores["metric"] == "context_recall"]
    assert set(recall["status"]) == {"not_applicable"}
    assert recall["value"].isna().all()
    assert all(recall["reason"])
    assert scores["tags"].iloc[0] in ({"channel": "web"}, {"channel": "app"})


def test_without_metrics_all_the_defaults_are_scored() -> None:
    """Six of them."""
    assert len(ragmetrics.evaluate(make_rows(2)).summary()) == 6


def test_parameters_of_a_metric() -> None:
    """`{name: parameters}` binds them: with two as the least grade, half good is not good."""
    strict: list[Any] = [{"context_precision": {"relevant_from": 2}}]
    value = ragmetrics.evaluate(ROWS, strict).summary().loc["context_precision", "mean"]
    assert value <= mean(ROWS, "context_precision")


def test_an_unknown_parameter_is_told() -> None:
    """With those that there are."""
    with pytest.raises(InputError, match=r"context_precision has no parameter 'k'; it has: "):
        ragmetrics.evaluate(ROWS, [{"context_precision": {"k": 3}}])


def test_an_unknown_metric_is_told() -> None:
    """With those that there are."""
    with pytest.raises(InputError, match=r"no metric 'recall'; there are: .*context_recall"):
        ragmetrics.evaluate(ROWS, ["recall"])


def test_what_is_no_row_list_is_told() -> None:
    """By its type."""
    with pytest.raises(InputError, match="expected a path, dicts or a table, not int"):
        ragmetrics.evaluate(3)


def test_rows_that_are_none_are_told() -> None:
    """With the reason that most of them have."""
    message = r"no row that can be read; 2 quarantined, most often: user_input: no question \(2\)"
    with pytest.raises(InputError, match=message):
        ragmetrics.evaluate([{"question": "q"}, {"question": "r"}])


def test_a_recording_that_is_played_is_not_written_over(tmp_path: Path) -> None:
    """Fewer rows, or a run that breaks off, would leave less of it than there was."""
    tape = tmp_path / "tape.jsonl"
    ragmetrics.evaluate(ROWS, METRICS, record=tape)
    before = tape.read_bytes()
    for judge in (f"recorded:{tape}", f"recorded:{tape}#lexical"):
        with pytest.raises(InputError, match=r"recording .*tape\.jsonl: is one of the inputs"):
            ragmetrics.evaluate(ROWS, METRICS, judge, record=tape, limit=1)
    assert tape.read_bytes() == before


def test_limit_reads_only_so_many_rows() -> None:
    """From the beginning."""
    scores = ragmetrics.evaluate(ROWS, ["context_relevance"], limit=5).scores()
    assert sorted(scores["id"]) == [row["id"] for row in ROWS[:5]]


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT])
def test_missing_cells_of_a_table_are_missing_values(missing: object) -> None:
    """However pandas writes them: no time, no reference, and the row is scored."""
    table = pd.DataFrame(ROWS).astype({"timestamp": object, "reference": object})
    table["timestamp"] = pd.Series([missing] * len(table), dtype=object)
    table["reference"] = pd.Series([missing] * len(table), dtype=object)
    for rows in (table, [{**row, "timestamp": missing, "reference": missing} for row in ROWS]):
        summary = ragmetrics.evaluate(rows, METRICS).summary()
        assert summary.loc["context_relevance", "status"] == {"scored": 12}
        assert summary.loc["context_recall", "status"] == {"not_applicable": 12}


def test_times_and_arrays_of_a_table() -> None:
    """As Parquet gives them to pandas."""
    table = pd.DataFrame(ROWS)
    table["timestamp"] = pd.to_datetime(table["timestamp"])
    table["retrieved_contexts"] = [pd.array(row["retrieved_contexts"]) for row in ROWS]
    result = ragmetrics.evaluate(table, ["context_relevance"])
    assert result.manifest.source.rows == 12
    assert result.manifest.source.oldest == table["timestamp"].min()


def test_rows_are_read_while_another_thread_imports_pandas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that is not there to its end has no tables, and nobody can have brought one."""
    monkeypatch.setitem(sys.modules, "pandas", ModuleType("pandas"))
    rows = [{**row, "timestamp": date(2026, 11, 19)} for row in ROWS]
    inputs = inputs_of(make_settings({}), rows, tmp_path, None)
    assert len([one for one in inputs.logs[0].read() if isinstance(one, LogRow)]) == 12


def test_inside_a_running_event_loop() -> None:
    """As in a notebook."""

    async def cell() -> float:
        return mean(ROWS)

    assert asyncio.run(cell()) == mean(ROWS)


def test_aevaluate_leaves_the_loop_alone() -> None:
    """While rows are scored, other tasks go on: the last row comes after one of them."""
    ticked = threading.Event()

    def rows() -> Iterator[dict[str, Any]]:
        yield from ROWS[:-1]
        assert ticked.wait(60)
        yield ROWS[-1]

    async def both() -> ragmetrics.Result:
        scored = asyncio.create_task(ragmetrics.aevaluate(rows(), METRICS))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, ticked.set)
        return await scored

    assert list(asyncio.run(both()).summary()["scored"]) == [12, 12]


@pytest.mark.parametrize("name", ["lexical", "openai"])
def test_a_recording_gives_the_same_numbers(
    tmp_path: Path, judge_server: JudgeServer, name: str
) -> None:
    """Replies that were recorded are played back without a judge."""
    tape = tmp_path / "tape.jsonl"
    metrics = [*METRICS, "context_precision"]
    judge = {"name": name, "base_url": judge_server.base_url}
    first = ragmetrics.evaluate(ROWS, metrics, judge, record=tape).scores()
    asked = judge_server.stats()["requests"]
    again = ragmetrics.evaluate(ROWS, metrics, judge=f"recorded:{tape}").scores()
    pd.testing.assert_frame_equal(again, first)
    assert judge_server.stats()["requests"] == asked


def test_a_row_that_is_not_in_the_recording_fails_alone(tmp_path: Path) -> None:
    """It is judge_failed, and says why."""
    tape = tmp_path / "tape.jsonl"
    ragmetrics.evaluate(ROWS[:-1], ["context_recall"], record=tape)
    scores = ragmetrics.evaluate(ROWS, ["context_recall"], f"recorded:{tape}").scores()
    failed = scores[scores["status"] == "judge_failed"]
    assert list(failed["id"]) == [ROWS[-1]["id"]]
    assert "the recording has no reply" in failed["reason"].iloc[0]


def test_arguments_go_before_the_settings(tmp_path: Path, judge_server: JudgeServer) -> None:
    """The judge, the metrics and the golden set of a call are those of the call."""
    settings = make_settings({"judge": "lexical", "metrics": ["context_recall"]})
    result = ragmetrics.evaluate(
        ROWS,
        ["context_relevance"],
        judge="openai",
        base_url=judge_server.base_url,
        settings=settings,
    )
    assert result.manifest.judge.name.startswith("openai:")
    assert list(result.summary().index) == ["context_relevance"]


def test_settings_bring_the_judge(judge_server: JudgeServer) -> None:
    """Where the call names none."""
    judge = judge_at(judge_server)
    result = ragmetrics.evaluate(ROWS, METRICS, settings=make_settings({"judge": judge}))
    assert result.manifest.judge.name.startswith("openai:")


def test_settings_bring_the_keys_of_a_bucket(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs in a bucket that the environment does not describe are read by `storage_options`."""
    body = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    s3.client.put_object(Bucket=s3.name, Key="logs/a.jsonl", Body=body)
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    options = {"key": "testing", "secret": "testing", "endpoint_url": s3.endpoint}
    settings = make_settings({"storage_options": options})
    assert mean(f"{s3.uri}/logs", settings=settings) == mean(ROWS)


def test_a_golden_set_brings_the_references(tmp_path: Path) -> None:
    """To rows without."""
    golden = write_jsonl(tmp_path / "golden.jsonl", ROWS)
    bare = make_rows(12, good=0.75, reference=None)
    assert mean(bare, "context_recall", golden=str(golden)) == mean(ROWS, "context_recall")


def test_an_unknown_judge_is_told() -> None:
    """With those that there are."""
    with pytest.raises(SettingsError, match=r"should be .*\blearned, .*\brecorded:PATH"):
        ragmetrics.evaluate(ROWS, judge="gpt-4")


def test_progress_is_told_part_by_part() -> None:
    """Up to the last."""
    told: list[tuple[str, int, int]] = []
    ragmetrics.evaluate(ROWS, METRICS, progress=lambda *step: told.append(step))
    assert told == [("context_relevance", 1, 2), ("context_recall", 2, 2)]


def test_the_scores_go_with_the_result() -> None:
    """The temporary folder is gone once nobody holds the result."""
    result = ragmetrics.evaluate(ROWS, ["context_relevance"])
    folder = Path(result._folder.name)
    assert folder.is_dir()
    del result
    gc.collect()
    assert not folder.exists()


def test_a_model_without_its_judge_is_told() -> None:
    """`--model gpt-4.1` alone would be scored by the lexical judge, and look like the model's."""
    with pytest.raises(SettingsError, match="model: has no effect on the judge lexical"):
        ragmetrics.evaluate(ROWS, METRICS, model="gpt-4.1")


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ([5], "a metric is a name, or a mapping"),
        ([{"ndcg": 5}], "ndcg: parameters are a mapping, not 5"),
        ([{"context_precision": {"relevant_from": "two"}}], "relevant_from: should be 1 or 2"),
        ([{"response_relevancy": {"questions": "3"}}], "questions: should be a valid integer"),
        ([{"ndcg": {"k": 5}}, {"ndcg": {"k": 10}}], "ndcg: named twice"),
    ],
)
def test_a_wrong_parameter_is_told_before_anything_is_asked(
    metrics: list[Any], message: str
) -> None:
    """By the metric's name and the parameter's."""
    with pytest.raises(InputError, match=message):
        ragmetrics.evaluate(ROWS, metrics)


def test_a_budget_is_an_argument(judge_server: JudgeServer) -> None:
    """It goes before the settings, in an estimate too."""
    judge = judge_at(judge_server)
    metrics = ["context_relevancy", "context_recall"]
    settings = ragmetrics.make_settings({"judge": judge, "budget": {"max_tokens": 1}})
    bounds: dict[str, Any] = {"budget": {"max_requests": 5}, "settings": settings}
    plan = ragmetrics.estimate(make_rows(10), metrics, **bounds).plan
    result = ragmetrics.evaluate(make_rows(10), metrics, **bounds)
    assert plan is not None
    assert result.manifest.budget is not None
    assert result.manifest.budget.limits == plan.limits
    assert 0 < result.usage.requests == judge_server.stats()["requests"] <= 5
    assert result.summary()["scored"].sum() == result.usage.requests


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"budget": 50}, r"^budget: should be a mapping such as \{max_requests: 1000\}$"),
        ({"budget": {"max_requests": True}}, "^budget: max_requests: should be a number$"),
    ],
)
def test_a_wrong_bound_is_told(wrong: dict[str, Any], told: str) -> None:
    """With its name, before anything is read."""
    with pytest.raises(SettingsError, match=told):
        ragmetrics.evaluate(make_rows(1), **wrong)


def test_a_result_says_what_it_is() -> None:
    """In a notebook its rows and means are seen at once."""
    result = ragmetrics.evaluate(make_rows(3), ["context_recall", "hit_rate"])
    assert repr(result) == "Result(3 rows: context_recall 1.000, hit_rate -)"
    assert result.usage == result.manifest.usage


@pytest.mark.parametrize("one", ["context_recall", {"context_recall": {}}])
def test_a_single_metric_needs_no_list(one: str | dict[str, Any]) -> None:
    """A text is a name, and not a list of letters."""
    result = ragmetrics.evaluate(make_rows(3), one)
    assert [summary.metric for summary in result.manifest.metrics] == ["context_recall"]


@pytest.mark.filterwarnings("ignore::ragmetrics.RowsLost")
def test_a_notebook_shows_the_result_as_a_table() -> None:
    """With what was lost; names are text, and no HTML."""
    rows = [*make_rows(3), {"user_input": 7}]
    page = ragmetrics.evaluate(rows, "context_recall")._repr_html_()
    assert "<p>3 rows, 1 quarantined</p>" in page
    assert "<th>context_recall</th>" in page
