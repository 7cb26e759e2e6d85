"""What users did, as tracing tools log it: joined with the retrieval of its trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import load_settings, make_settings
from ragmetrics.logs.preset_rows import Traces
from ragmetrics.logs.recognition import recognise
from ragmetrics.pipeline import check_logs, init_settings
from tests.fakes.logs import write_jsonl
from tests.fakes.traces import run, span

HITS = {"user_query": "q?", "query_response_hit_ids": ["a", "b"]}


def rows(preset: str, records: list[Any], traces: Traces | None = None) -> dict[str, Any]:
    """The rows by id."""
    items = (item for _, item in run(preset, records, traces))
    return {item["id"]: item for item in items if isinstance(item, dict)}


def score(trace: str = "t", **fields: Any) -> dict[str, Any]:
    """A score of Langfuse."""
    return {"id": "s", "traceId": trace, "name": "user-feedback", "value": 0, **fields}


def observation(trace: str = "t") -> dict[str, Any]:
    """A retrieval of Langfuse."""
    return {"id": f"o-{trace}", "traceId": trace, "type": "RETRIEVER", "input": "q?", "output": []}


def event(action: str, query: str = "q", **attributes: Any) -> dict[str, Any]:
    """An event of UBI."""
    return {"action_name": action, "query_id": query, "event_attributes": attributes}


def on(name: str) -> dict[str, Any]:
    """The object of an event."""
    return {"object_id": name}


@pytest.mark.parametrize(
    ("fields", "feedback"),
    [
        ({}, 0),
        ({"dataType": "CATEGORICAL", "value": 2, "stringValue": "outdated"}, "outdated"),
        ({"data_type": "BOOLEAN", "value": 1, "string_value": "True", "source": "API"}, 1),
        ({"source": "EVAL"}, None),
        ({"source": "ANNOTATION"}, None),
        ({"name": "context_recall"}, None),
        ({"value": None}, None),
    ],
)
def test_a_score_of_langfuse_is_feedback_by_its_name(fields: Any, feedback: Any) -> None:
    """Scores of evaluators, reviewers and of ragmetrics itself are none."""
    found = rows("langfuse", [score(**fields), observation()])
    assert found["o-t"].get("feedback") == feedback


def test_a_downloaded_trace_of_langfuse_has_its_scores() -> None:
    """They stand beside the observations."""
    record = {"trace": {"id": "t"}, "observations": [observation()], "scores": [score()]}
    assert rows("langfuse", [record])["o-t"]["feedback"] == 0


def test_what_a_user_said_last_counts() -> None:
    """By time, and not by the order in the export."""
    late = score(value=1, timestamp="2026-11-19T09:00:00Z")
    early = score(value=0, timestamp="2026-11-19T08:00:00Z")
    assert rows("langfuse", [late, early, observation()])["o-t"]["feedback"] == 1


@pytest.mark.parametrize(
    ("stats", "feedback"),
    [
        ({"user_score": {"n": 2, "avg": 0.5}}, 0.5),
        ({"correctness": {"n": 1, "avg": 0.0}, "thumbs": {"n": 1, "avg": 1}}, 1),
        ({"rating": {"n": 3, "avg": None, "values": {"good": 2, "bad": 1}}}, "good"),
        ({"helpfulness": {"n": 1, "avg": 1.0}}, None),
        ("[]", None),
    ],
)
def test_feedback_stats_of_langsmith(stats: Any, feedback: Any) -> None:
    """Of whichever run of the trace a user was asked."""
    records = [span("r", "retriever", "c"), span("c", "chain", feedback_stats=stats)]
    assert rows("langsmith", records)["r"].get("feedback") == feedback


@pytest.mark.parametrize(
    ("annotation", "feedback"),
    [
        ({"name": "thumbs", "annotator_kind": "HUMAN", "result": {"label": "down"}}, "down"),
        ({"name": "thumbs", "annotator_kind": "LLM", "result": {"score": 0}}, None),
        ({"name": "relevance", "annotator_kind": "HUMAN", "result": {"score": 0}}, None),
        ("odd", None),
    ],
)
def test_annotations_of_phoenix(annotation: Any, feedback: Any) -> None:
    """Those of people under a name of feedback."""
    record = {
        "context": {"span_id": "r", "trace_id": "t"},
        "span_kind": "RETRIEVER",
        "attributes": {"input.value": "q?"},
        "annotations": [annotation],
    }
    assert rows("openinference", [record])["r"].get("feedback") == feedback


def test_queries_and_events_of_ubi_are_joined() -> None:
    """Clicks in their order, also by the internal id; a rating before the thumb."""
    records = [
        event("click", object=on("b")),
        {"query_id": "q", **HITS},
        event("click_through", object={"object_id": "x", "internal_id": "a"}),
        event("purchase", object=on("a"), rating="4/5"),
        {"query_id": "p", **HITS},
    ]
    found = rows("ubi", records)
    assert found["q"]["clicked_context_ids"] == ["b", "x", "a"]
    assert found["q"]["feedback"] == "4/5"
    assert found["p"]["clicked_context_ids"] == []


def test_queries_of_ubi_without_any_event_say_nothing_of_clicks() -> None:
    """Their events may not have been exported: no click is not the same."""
    assert "clicked_context_ids" not in rows("ubi", [{"query_id": "q", **HITS}])["q"]


def test_events_may_come_long_before_their_queries() -> None:
    """As in a file of their own: what users did is kept when their traces are closed."""
    clicks = [event("click", f"q{n}", object=on("a")) for n in range(5)]
    queries = [{"query_id": f"q{n}", **HITS} for n in range(5)]
    found = rows("ubi", [*clicks, *queries], Traces(most_traces=2))
    assert {row["clicked_context_ids"][0] for row in found.values()} == {"a"}


def test_a_log_of_ubi_is_recognised_though_it_has_no_texts() -> None:
    """Also where only events are among its first records."""
    assert recognise([event("click", object=on("a"))] * 3).preset == "ubi"
    assert recognise([{"query_id": "q", **HITS}]).preset == "ubi"


def test_files_of_one_folder_named_one_by_one_are_joined(tmp_path: Path) -> None:
    """As a shell names them: the events of one file are those of the queries of another, and the
    ids of contexts are no texts that a judge could read.
    """
    events = write_jsonl(tmp_path / "events.jsonl", [event("click", object=on("a"))])
    queries = write_jsonl(tmp_path / "queries.jsonl", [{"query_id": "q", **HITS}])
    report = check_logs(make_settings({"preset": "ubi"}), [str(queries), str(events)])
    assert report.rows == report.filled["clicked_context_ids"] == 1
    assert report.runnable["click_rate"] == 1
    assert "retrieved_contexts" not in report.filled
    assert report.runnable["context_relevance"] == 0


def test_init_proposes_what_users_did(tmp_path: Path) -> None:
    """The metrics that the log can feed, each with a rule; none of a judge that reads texts."""
    queries = [{"query_id": f"q{n}", **HITS, "user_query": f"q{n}?"} for n in range(60)]
    clicks = [event("click", f"q{n}", object=on("a")) for n in range(0, 60, 2)]
    write_jsonl(tmp_path / "logs" / "ubi.jsonl", [*queries, *clicks])
    found = init_settings(str(tmp_path / "logs"), tmp_path / "ragmetrics.yaml")
    ruled = {limit.metric for limit in found.limits}
    assert {"click_rate", "clicked_rank"} <= ruled
    assert not {"user_feedback", "context_relevance"} & ruled
    assert {"click_rate", "clicked_rank"} <= {*load_settings(found.path).metrics}
