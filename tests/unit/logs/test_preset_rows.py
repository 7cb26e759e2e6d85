"""Presets: each sample gives exactly the rows that the docs promise, and nothing is lost."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import PRESETS, make_settings, with_overrides
from ragmetrics.errors import SettingsError
from ragmetrics.logs import LogSet, ReadCounts, find_logs
from ragmetrics.logs.exported_values import answer_in, question_in
from ragmetrics.logs.preset_rows import AGAIN, Skipped, Traces
from ragmetrics.pipeline import check_logs, evaluate
from ragmetrics.records import BadRow, LogRow, Rejected
from tests.fakes.logs import write_jsonl
from tests.fakes.traces import run, span

HELMET = "Helmets are lent free of charge at every station with staff."
DEPOSIT = "A deposit of 50 euros is held on your card until the bicycle is back."
LOST = "Lost keys cost 25 euros. Report them in the app."
NIGHT = "Stations are open from 6 to 23 hours."
FREE = "No, helmets are lent at staffed stations."
Q_HELMET, Q_DEPOSIT = "Do I need to bring a helmet?", "How much is the deposit?"


def at(second: float, minute: int = 0) -> datetime:
    """A moment of the samples' morning."""
    micros = round(second % 1 * 1e6)
    return datetime(2026, 11, 19, 8, minute, int(second), micros, tzinfo=UTC)


SAMPLES: dict[str, list[LogRow]] = {
    "ragas": [
        LogRow(
            "ragas.jsonl:1",
            Q_HELMET,
            (HELMET, NIGHT),
            response=FREE,
            reference="Helmets are lent free of charge.",
            retrieved_context_ids=("faq-1", "faq-9"),
            tags={"query_style": "WEB_SEARCH_LIKE"},
        ),
        LogRow(
            "ragas.jsonl:2",
            Q_DEPOSIT,
            (DEPOSIT,),
            response="50 euros.",
            reference="The deposit is 50 euros.",
        ),
        LogRow(
            "ragas.jsonl:3",
            "What does a lost key cost?",
            (LOST,),
            response="25 euros.",
            reference="A lost key costs 25 euros.",
        ),
    ],
    "openinference": [
        LogRow(
            "eee19b7ec3c1b174",
            Q_HELMET,
            (HELMET, NIGHT),
            at(1.25),
            response=FREE,
            retrieved_context_ids=("faq-1", "faq-9"),
            retrieved_context_scores=(0.82, 0.31),
            index_build="2026-11-18",
            trace_id="5b8efff798038103d269b633813fc60c",
            span_id="eee19b7ec3c1b174",
            feedback="1",
            tags={"model": "gpt-4.1-mini", "retriever": "VectorStoreRetriever"},
        ),
        LogRow(
            "1f2e3d4c5b6a7988",
            Q_DEPOSIT,
            (DEPOSIT, LOST),
            at(2),
            response="50 euros.",
            retrieved_context_ids=("faq-2", "faq-4"),
            trace_id="7c1d0a4be2f94c55a3b1f0d2c4e6a801",
            span_id="1f2e3d4c5b6a7988",
            tags={"retriever": "VectorStoreRetriever"},
        ),
        LogRow(
            "2a2b2c2d2e2f2a2b",
            "Do you rent unicycles?",
            (),
            at(9),
            trace_id="9e2f6b1c8d7a45f0b3c2d1e0f9a8b7c6",
            span_id="2a2b2c2d2e2f2a2b",
            tags={"retriever": "VectorStoreRetriever"},
        ),
    ],
    "langfuse": [
        LogRow(
            "obs-2",
            Q_HELMET,
            (HELMET, NIGHT),
            at(1.25),
            response=FREE,
            retrieved_context_ids=("faq-1", "faq-9"),
            index_build="2026-11-18",
            trace_id="trace-1",
            span_id="obs-2",
            feedback="1",
            tags={
                "environment": "production",
                "release": "v12",
                "model": "gpt-4.1-mini",
                "retriever": "faq-retriever",
                "trace": "help-desk",
            },
        ),
        LogRow(
            "obs-4",
            Q_DEPOSIT,
            (DEPOSIT,),
            at(0.1, minute=5),
            response="50 euros.",
            retrieved_context_scores=(0.7,),
            trace_id="trace-2",
            span_id="obs-4",
            tags={"environment": "production", "trace": "help-desk", "retriever": "retrieval"},
        ),
    ],
    "otel": [
        LogRow(
            "00f067aa0ba902b7",
            Q_HELMET,
            (HELMET, NIGHT),
            at(1),
            response=FREE,
            retrieved_context_ids=("faq-1", "faq-9"),
            retrieved_context_scores=(0.82, 0.31),
            index_build="2026-11-18",
            trace_id="5b8efff798038103d269b633813fc60c",
            span_id="00f067aa0ba902b7",
            retrieval_ms=400,
            tags={
                "model": "gpt-4.1-mini",
                "retriever": "retrieval faq",
                "data_source": "faq",
                "service": "help-desk",
            },
        ),
        LogRow(
            "22f067aa0ba902b7",
            Q_DEPOSIT,
            (DEPOSIT, LOST),
            at(5),
            response="50 euros.",
            retrieved_context_ids=("faq-2", "faq-4"),
            trace_id="7c1d0a4be2f94c55a3b1f0d2c4e6a801",
            span_id="22f067aa0ba902b7",
            retrieval_ms=400,
            tags={"retriever": "chroma.query", "data_source": "chroma", "service": "help-desk"},
        ),
    ],
    "langsmith": [
        LogRow(
            "3f0c2a9e-6f1d-4d0a-9a35-0d5b1c7e8a11",
            Q_HELMET,
            (HELMET, NIGHT),
            at(1.25),
            response=FREE,
            retrieved_context_ids=("faq-1", "faq-9"),
            index_build="2026-11-18",
            trace_id="3f0c2a9e-6f1d-4d0a-9a35-0d5b1c7e8a01",
            span_id="3f0c2a9e-6f1d-4d0a-9a35-0d5b1c7e8a11",
            feedback="1",
            tags={
                "project": "help-desk",
                "revision": "v12",
                "section": "stations",
                "tenant": "acme",
                "model": "gpt-4.1-mini",
                "retriever": "VectorStoreRetriever",
            },
        ),
        LogRow(
            "8a4d7b10-2c5e-4f19-b7aa-5e6f7a8b9c02",
            Q_DEPOSIT,
            (DEPOSIT,),
            at(0, minute=1),
            retrieved_context_ids=("faq-2",),
            retrieved_context_scores=(0.7,),
            trace_id="8a4d7b10-2c5e-4f19-b7aa-5e6f7a8b9c02",
            span_id="8a4d7b10-2c5e-4f19-b7aa-5e6f7a8b9c02",
            tags={"retriever": "retrieve_docs"},
        ),
        LogRow(
            "9b5e8c21-3d6f-4a2b-88bb-6f7a8b9c0d03",
            "When do stations open?",
            (),
            at(0, minute=2),
            trace_id="9b5e8c21-3d6f-4a2b-88bb-6f7a8b9c0d03",
            span_id="9b5e8c21-3d6f-4a2b-88bb-6f7a8b9c0d03",
            retrieval_error="TimeoutError('vector store')",
            tags={"retriever": "retrieve_docs"},
        ),
    ],
    "ubi": [
        LogRow(
            "q-1",
            Q_HELMET,
            ("faq-9", "faq-1"),
            at(1),
            retrieved_context_ids=("faq-9", "faq-1"),
            index_build="2026-11-18",
            trace_id="q-1",
            span_id="q-1",
            feedback="thumbs_up",
            clicked_context_ids=("faq-1",),
            tags={"application": "help-desk"},
        ),
        LogRow(
            "q-2",
            Q_DEPOSIT,
            ("faq-2",),
            at(0, minute=1),
            retrieved_context_ids=("faq-2",),
            trace_id="q-2",
            span_id="q-2",
            clicked_context_ids=(),
        ),
    ],
    "mlflow": [
        LogRow(
            "2e4498c78c232a0f",
            Q_HELMET,
            (HELMET, NIGHT),
            at(1.25),
            response=FREE,
            retrieved_context_ids=("faq-1", "faq-9"),
            retrieved_context_scores=(0.82, 0.31),
            index_build="2026-11-18",
            trace_id="tr-5b8efff798038103d269b633813fc60c",
            span_id="2e4498c78c232a0f",
            tags={"section": "stations", "retriever": "retrieve"},
        ),
        LogRow(
            "1f2e3d4c5b6a7988",
            Q_DEPOSIT,
            (DEPOSIT,),
            at(0, minute=1),
            retrieved_context_ids=("faq-2",),
            trace_id="tr-7c1d0a4be2f94c55a3b1f0d2c4e6a801",
            span_id="1f2e3d4c5b6a7988",
            tags={"retriever": "search"},
        ),
        LogRow(
            "2a2a2c2d2e2f2a2b",
            "When do stations open?",
            (),
            at(0, minute=2),
            trace_id="tr-9e2f6b1c8d7a45f0b3c2d1e0f9a8b7c6",
            span_id="2a2a2c2d2e2f2a2b",
            retrieval_error="failed",
            tags={"retriever": "retrieve"},
        ),
    ],
}
LEFT_OUT: dict[str, tuple[str, dict[str, int]]] = {
    "ragas": (
        "retrieved_contexts: should be a list",
        {"multi-turn sample: not a retrieval": 1},
    ),
    "openinference": (
        "user_input: its MIME type says JSON, but it is not",
        {"CHAIN span: gave a row its response": 2, "LLM span: not a retrieval": 1},
    ),
    "langfuse": (
        "output: no list of documents",
        {
            "SPAN observation: gave a row its response": 1,
            "trace: gave a row its response": 1,
            "GENERATION observation: not a retrieval": 1,
            "score: what a user did": 1,
        },
    ),
    "otel": (
        "retrieved_contexts: no text in 1 of 1 documents",
        {
            "chat span: gave a row its response": 1,
            "other span: gave a row its response": 1,
            "other span: not a retrieval": 1,
            "metrics, not traces": 1,
        },
    ),
    "langsmith": (
        "outputs: no list of documents (export runs with their inputs and outputs)",
        {
            "chain run: gave a row its response": 1,
            "llm run: not a retrieval": 1,
        },
    ),
    "ubi": (
        "query_response_hit_ids: no list of ids",
        {
            "impression event: what a user did": 1,
            "click event: what a user did": 1,
            "other event: what a user did": 1,
        },
    ),
    "mlflow": (
        "mlflow.spanOutputs: no list of documents",
        {"CHAIN span: gave a row its response": 1},
    ),
}


def sample(name: str) -> Path:
    """A file with the sample of a preset's docs."""
    path = Path(tempfile.mkdtemp()) / f"{name}.jsonl"
    return write_jsonl(path, PRESETS.find(name).sample)


def read(place: Path, preset: str, **how: Any) -> tuple[list[LogRow], list[Rejected], Counter[str]]:
    """What a log gives by a preset: rows, quarantine, counts of what was skipped."""
    counts = ReadCounts()
    items = list(LogSet(*find_logs(str(place)), preset=preset, **how).read(counts))
    rows = [item for item in items if isinstance(item, LogRow)]
    return rows, [item for item in items if isinstance(item, Rejected)], counts.skipped


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_gives_exactly_its_rows(name: str) -> None:
    """Rows field by field, the malformed record in quarantine, and the others counted."""
    rows, rejected, skipped = read(sample(name), name)
    assert rows == SAMPLES[name]
    reason, counts = LEFT_OUT[name]
    assert [one.reason for one in rejected] == [reason]
    assert rejected[0].excerpt
    assert skipped == counts


def test_columns_go_before_the_preset(tmp_path: Path) -> None:
    """They look into the retrieval's own record; where they find nothing the preset's stays."""
    columns = {
        "tags.customer": "metadata.customer",
        "user_input": "inputs.original",
        "language": "no.such.path",
    }
    inputs = {"query": "q", "original": "o"}
    records = [
        span("r", "retriever", metadata={"customer": "acme"}, inputs=inputs),
        span("s", "retriever", None, "u"),
    ]
    log = write_jsonl(tmp_path / "runs.jsonl", records)
    rows, _, _ = read(log, "langsmith", columns=columns)
    assert [row.user_input for row in rows] == ["o", "s?"]
    assert rows[0].tags == {"customer": "acme"}


def test_columns_save_what_the_preset_cannot_read(tmp_path: Path) -> None:
    """OpenTelemetry asks for ids and scores only: the texts may stand in an attribute of yours."""
    record = json.loads(sample("otel").read_text().splitlines()[1])
    attributes = record["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"]
    texts = {"arrayValue": {"values": [{"stringValue": NIGHT}]}}
    attributes.append({"key": "app.passages", "value": texts})
    log = write_jsonl(tmp_path / "otel.jsonl", [record])
    columns = {"retrieved_contexts": "attributes.app.passages", "tags.a": "resource.attributes.x"}
    (row,), rejected, _ = read(log, "otel", columns=columns)
    assert (row.retrieved_contexts, rejected) == ((NIGHT,), [])


def test_a_trace_may_go_over_several_files(tmp_path: Path) -> None:
    """LangSmith writes one file per trace, collectors rotate theirs in the midst of one."""
    write_jsonl(tmp_path / "1.jsonl", [span("r", "retriever", "c")])
    (tmp_path / "2.jsonl.gz").write_bytes(b"\x1f\x8bno such thing")
    write_jsonl(tmp_path / "3.jsonl", [span("c", "chain")])
    (row,), (broken,), _ = read(tmp_path, "langsmith")
    assert row.response == "answer of c"
    assert (broken.file, broken.whole_file) == ("2.jsonl.gz", True)


def test_the_metadata_of_a_root_run_of_langsmith(tmp_path: Path) -> None:
    """Short texts are tags, but those of people, ids and LangSmith; the index version is the
    build."""
    metadata = {
        "tenant": "acme",
        "index_version": "v7",
        "user_email": "a@b.c",
        "thread_id": "t",
        "ls_method": "traceable",
        "depth": 3,
        "note": "x" * 61,
        "\x1b[31m": "red",
    }
    root = {**span("c", "chain"), "extra": {"metadata": metadata}}
    below = {**span("r", "retriever", "c"), "extra": {"metadata": {"kind": "vector"}}}
    (row,), _, _ = read(write_jsonl(tmp_path / "runs.jsonl", [root, below]), "langsmith")
    assert (row.index_build, row.tags["tenant"]) == ("v7", "acme")
    assert set(row.tags) <= {"tenant", "project", "revision", "model", "retriever"}


def test_the_tags_of_a_root_run_of_langsmith(tmp_path: Path) -> None:
    """Those with a name and a value are as good as metadata; metadata of the same name wins."""
    root = {
        **span("c", "chain"),
        "tags": ["production", "section: billing", "tenant:other", "user:7", "index_version:v8"],
        "extra": {"metadata": {"tenant": "acme"}},
    }
    below = {**span("r", "retriever", "c"), "tags": ["section:inner"]}
    (row,), _, _ = read(write_jsonl(tmp_path / "runs.jsonl", [root, below]), "langsmith")
    assert (row.index_build, row.tags["section"], row.tags["tenant"]) == ("v8", "billing", "acme")
    assert set(row.tags) <= {"section", "tenant", "project", "revision", "model", "retriever"}


def test_phoenix_spans_as_parquet(tmp_path: Path) -> None:
    """As `get_spans_dataframe().to_parquet()` writes them: flat columns, the id as the index."""
    lines = [json.loads(line) for line in sample("openinference").read_text().splitlines()]
    frame = pd.DataFrame([line for line in lines if "context.span_id" in line])
    frame["start_time"] = pd.to_datetime(frame["start_time"], format="ISO8601")
    frame = frame.set_index("context.span_id")
    frame.to_parquet(tmp_path / "spans.parquet")
    rows, rejected, _ = read(tmp_path / "spans.parquet", "openinference")
    assert (rows, rejected) == (SAMPLES["openinference"][:1], [])
    result = evaluate(frame, ["context_relevance"], preset="openinference")
    assert [line["id"] for line in result.records()] == ["eee19b7ec3c1b174"]


def test_phoenix_spans_by_otlp(tmp_path: Path) -> None:
    """A collector's file with OpenInference attributes reads like Phoenix's own export."""
    (found,) = run("openinference", [_otlp({"openinference.span.kind": "RETRIEVER"})])
    assert found[1]["id"] == "s"
    assert found[1]["retrieved_contexts"] == ["one"]


def _otlp(attributes: Mapping[str, str]) -> dict[str, Any]:
    given = {"input.value": "q", "retrieval.documents.0.document.content": "one", **attributes}
    pairs = [{"key": name, "value": {"stringValue": value}} for name, value in given.items()]
    one = {"traceId": "t", "spanId": "s", "startTimeUnixNano": "1", "attributes": pairs}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}


def test_flattened_documents_keep_their_rank() -> None:
    """The tenth comes after the ninth, whatever the order of the keys."""
    documents = {f"retrieval.documents.{n}.document.content": str(n) for n in reversed(range(12))}
    record = {
        "span_kind": "RETRIEVER",
        "attributes": {"input.value": "q", **documents},
    }
    ((_, row),) = run("openinference", [record])
    assert row["retrieved_contexts"] == [str(n) for n in range(12)]


def test_a_bad_span_does_not_spoil_its_line() -> None:
    """OTLP lines hold many spans; the reason is told for the bad one."""
    line = _otlp({"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": "[]"})
    spans = line["resourceSpans"][0]["scopeSpans"][0]["spans"]
    bad = {**spans[0], "spanId": "bad", "attributes": [{"value": {}}]}
    spans.insert(0, bad)
    (_, error), (_, row) = run("otel", [line])
    assert str(error) == "attributes: an item has no key"
    assert (row["id"], row["retrieved_contexts"]) == ("s", [])


def test_the_console_exporter_of_the_sdk_reads_as_well(tmp_path: Path) -> None:
    """Python's `span.to_json()`: pretty printed, one object after the other."""
    record = {
        "name": "retrieval faq",
        "context": {"trace_id": "0x1", "span_id": "0x2", "trace_state": "[]"},
        "kind": "SpanKind.CLIENT",
        "parent_id": None,
        "start_time": "2026-11-19T08:00:01.000000Z",
        "status": {"status_code": "UNSET"},
        "attributes": {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.retrieval.query.text": "q",
            "gen_ai.retrieval.documents": '[{"id": "a", "score": 1, "content": "one"}]',
        },
        "resource": {"attributes": {"service.name": "desk"}},
    }
    (tmp_path / "spans.json").write_text(json.dumps(record, indent=4) * 2)
    (row,), _, skipped = read(tmp_path / "spans.json", "otel")
    assert (row.id, row.timestamp, row.tags["service"]) == ("0x2", at(1), "desk")
    assert skipped == {AGAIN.reason: 1}


def test_langsmith_runs_may_be_nested() -> None:
    """As `client.read_run(id, load_child_runs=True)` gives them."""
    tree = span("c", "chain", child_runs=[span("r", "retriever", "c"), span("l", "llm", "c")])
    items = [item for _, item in run("langsmith", [tree])]
    assert [item["id"] for item in items if isinstance(item, dict)] == ["r"]
    assert len(items) == 3


def test_a_csv_export_of_langfuse(tmp_path: Path) -> None:
    """Cells of JSON are decoded by the preset; a column named tags is Langfuse's, not ours."""
    documents = json.dumps([{"page_content": "one"}]).replace('"', '""')
    (tmp_path / "observations.csv").write_text(
        f'id,traceId,type,name,input,output,tags\no,t,RETRIEVER,r,q,"{documents}",a b\n'
    )
    (row,), rejected, _ = read(tmp_path / "observations.csv", "langfuse")
    assert (row.retrieved_contexts, rejected) == (("one",), [])


def test_a_csv_file_of_ragas(tmp_path: Path) -> None:
    """Lists are cells of JSON, under the old names as under the new."""
    (tmp_path / "set.csv").write_text('question,contexts,answer\nq,"[""one""]",a\n')
    (row,), _, _ = read(tmp_path / "set.csv", "ragas")
    assert (row.user_input, row.retrieved_contexts, row.response) == ("q", ("one",), "a")


@pytest.mark.parametrize("name", SAMPLES)
def test_check_shows_what_was_skipped(name: str) -> None:
    """`ragmetrics check --preset` counts rows, quarantine and skipped records."""
    report = check_logs(with_overrides(make_settings({}), preset=name), [str(sample(name))])
    assert (report.rows, report.quarantined) == (len(SAMPLES[name]), 1)
    assert report.as_json()["skipped"] == LEFT_OUT[name][1]


@pytest.mark.filterwarnings("ignore::ragmetrics.RowsLost")
def test_scores_count_what_was_skipped() -> None:
    """`score --json` and the manifest have the counts; a wrong preset is told."""
    result = evaluate(sample("langsmith"), ["context_relevance"], preset="langsmith")
    assert result.as_json()["skipped"] == LEFT_OUT["langsmith"][1]
    with pytest.raises(
        SettingsError,
        match="preset: unknown preset 'phoenix'; the presets are: langfuse",
    ):
        with_overrides(make_settings({}), preset="phoenix")


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("text", "text"),
        ("", None),
        ({"question": "q", "answer": "a", "context": [{"page_content": "d"}]}, "a"),
        ({"choices": [{"message": {"role": "assistant", "content": "a"}}]}, "a"),
        ({"generations": [[{"text": "a", "type": "ChatGeneration"}]]}, "a"),
        ({"messages": [{"type": "human", "content": "q"}, {"type": "ai", "content": "a"}]}, "a"),
        ([{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}], "a"),
        ({"role": "assistant", "content": [{"type": "text", "text": "a"}] * 2}, "aa"),
        ([{"role": "tool", "content": "t"}, {"role": "user", "content": "q"}], None),
        ([{"content": "a document"}], None),
        (["a document"], None),
        ({"output": ["a document"]}, None),
        ({"documents": [{"text": "a document"}]}, None),
        (7, None),
    ],
)
def test_an_answer_is_found_in_the_outputs_of_many_tools(output: Any, answer: str | None) -> None:
    """Texts, named fields and the assistant's messages; documents are no answer."""
    assert answer_in(output) == answer


@pytest.mark.parametrize(
    ("value", "question"),
    [
        ("text", "text"),
        ("", ""),
        ({"query": "q", "k": 3}, "q"),
        ({"anything": "q"}, "q"),
        ({"anything": "q", "more": "r"}, None),
        ({"args": ["q"], "kwargs": {}}, "q"),
        ({"messages": [[{"type": "human", "content": "q"}, {"type": "ai", "content": "a"}]]}, "q"),
        ([{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "q"),
        ([1.5, 2.5], None),
    ],
)
def test_a_question_is_found_in_the_inputs_of_many_tools(value: Any, question: str | None) -> None:
    """Texts, named fields, a field alone and the user's last message."""
    assert question_in(value) == question


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = {
    "ragas": ["question", "contexts", "ground_truths", "user_input", "tags"],
    "openinference": [
        "span_kind",
        "attributes",
        "attributes.retrieval.documents",
        "context",
        "annotations",
    ],
    "langfuse": [
        "id",
        "type",
        "traceId",
        "trace",
        "observations",
        "input",
        "output",
        "name",
        "value",
    ],
    "otel": ["resourceSpans", "attributes", "events", "context", "resource", "start_time"],
    "langsmith": [
        "run_type",
        "id",
        "trace_id",
        "inputs",
        "outputs",
        "child_runs",
        "feedback_stats",
    ],
    "ubi": ["query_id", "user_query", "action_name", "event_attributes", "query_response_hit_ids"],
    "mlflow": ["info", "data", "spans", "trace_id", "tags"],
}
KINDS = st.sampled_from(["RETRIEVER", "retriever", "LLM", "llm", "SPAN", "t", "[]", "{"])


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore::ragmetrics.RowsLost")
def test_any_record_is_accounted_for(name: str, data: st.DataObject) -> None:
    """Whatever JSON stands there: no error, and each record comes out at least once, as a row,
    a reason to skip it or a reason to reject it.
    """
    shaped = st.dictionaries(st.sampled_from(KEYS[name]), JSON | KINDS, max_size=8)
    records = data.draw(st.lists(JSON | shaped | KINDS, max_size=6))
    given_out = run(name, records, Traces(most_traces=2))
    assert {number for number, _ in given_out} == set(range(len(records)))
    assert all(isinstance(item, dict | Skipped | BadRow) for _, item in given_out)
