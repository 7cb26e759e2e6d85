"""What a value that cannot be read costs: a field, or the row, which is counted and told."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import ragmetrics
from ragmetrics.config import make_settings
from ragmetrics.pipeline import check_logs
from tests.fakes.logs import write_jsonl


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"timestamp": "19/11/2026 10:00"}, "timestamp: should be a time such as"),
        ({"tags": ["web", "eu"]}, "tags: should be a mapping of texts to texts"),
        ({"response": 5}, "response: should be a valid string"),
        ({"retrieved_context_scores": ["high"]}, "retrieved_context_scores: should be a valid"),
        ({"reference_contexts": "one"}, "reference_contexts: should be a list"),
        ({"id": ["a"]}, "id: should be a valid string"),
    ],
)
def test_a_bad_optional_field_costs_only_itself(
    bad: Mapping[str, Any], reason: str, tmp_path: Path
) -> None:
    """The row stays without the field, and the field is counted."""
    records = [{"user_input": q, "retrieved_contexts": ["c"], **bad} for q in ("a?", "b?", "c?")]
    path = str(write_jsonl(tmp_path / "log.jsonl", records))
    result = ragmetrics.evaluate(path, "context_relevance")
    source = result.manifest.source
    assert (source.rows, source.quarantined) == (3, 0)
    assert [*source.dropped.values()] == [3]
    assert next(iter(source.dropped)).startswith(reason)
    assert result.as_json()["dropped"] == source.dropped


@pytest.mark.parametrize("bad", [{"user_input": 5}, {"retrieved_contexts": [5]}])
def test_a_bad_required_field_costs_the_row(bad: Mapping[str, Any], tmp_path: Path) -> None:
    """A row is a question and its contexts; the reason names that field and no other."""
    record = {"user_input": "q", "retrieved_contexts": ["c"], "timestamp": "never", **bad}
    path = str(write_jsonl(tmp_path / "log.jsonl", [record]))
    report = check_logs(make_settings({}), [path])
    assert report.quarantined == 1
    assert next(iter(report.reasons)).startswith(next(iter(bad)))


def half_bad(folder: Path) -> str:
    """A log of four rows; two of them have no contexts."""
    good = [{"user_input": q, "retrieved_contexts": ["A text."]} for q in ("a?", "b?")]
    bad = [{"user_input": q, "retrieved_contexts": 5} for q in ("c?", "d?")]
    return str(write_jsonl(folder / "log.jsonl", good + bad))


def test_evaluate_warns_of_lost_rows(tmp_path: Path) -> None:
    """With their number and the reason; the result has the number as a field."""
    said = (
        r"2 of 4 rows \(50%\) could not be read, most often: retrieved_contexts: should be a list"
    )
    with pytest.warns(ragmetrics.RowsLost, match=said):
        result = ragmetrics.evaluate(half_bad(tmp_path), "context_relevance")
    assert result.quarantined == 2


@pytest.mark.parametrize("alerts", [{"max_quarantined": 0.5}, {"checks": {"quarantine": 0.5}}])
def test_the_share_that_warns_is_a_setting(tmp_path: Path, alerts: dict[str, Any]) -> None:
    """The one at which an alert fires at night."""
    settings = make_settings({"alerts": alerts})
    with warnings.catch_warnings(action="error"):
        ragmetrics.evaluate(half_bad(tmp_path), "context_relevance", settings=settings)
