"""Joining spans: each retrieval is a row with the response of its trace, whatever the order."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import PRESETS
from ragmetrics.logs.hops import MOST_HOPS
from ragmetrics.logs.preset_rows import AGAIN, INSIDE, Place, Skipped, Traces
from ragmetrics.records import BadRow
from tests.fakes.traces import run, span


def test_traces_may_be_interleaved_and_out_of_order() -> None:
    """A child before its parent, another trace in between: each row gets its own response."""
    records = [
        span("r1", "retriever", "c1", "one"),
        span("c2", "chain", None, "two"),
        span("l1", "llm", "c1", "one"),
        span("r2", "retriever", "c2", "two"),
        span("c1", "chain", None, "one"),
    ]
    rows = {number: item for number, item in run("langsmith", records) if isinstance(item, dict)}
    assert {n: (row["id"], row["response"]) for n, row in rows.items()} == {
        0: ("r1", "answer of c1"),
        3: ("r2", "answer of c2"),
    }


def test_several_retrievals_of_a_trace_are_its_hops_by_start_time() -> None:
    """All are about the question of the root and have its response, whatever their order."""
    records = [
        span("r2", "retriever", "c", start_time="2026-11-19T08:00:02Z"),
        span("c", "chain", inputs={"question": "Why?"}),
        span("r1", "retriever", "c"),
    ]
    second, first = (item for _, item in run("langsmith", records) if isinstance(item, dict))
    assert (first["hop"], first["hop_queries"]) == (1, ["r1?"])
    assert (second["hop"], second["hop_queries"]) == (2, ["r2?"])
    for row in (first, second):
        assert (row["user_input"], row["response"]) == ("Why?", "answer of c")
        assert (row["trace_id"], row["span_id"]) == ("t", "c")


def test_a_trace_of_very_many_retrievals_is_a_batch_of_questions() -> None:
    """An evaluation in one trace is not one answer: its rows stay apart, without a response."""
    retrievals = [span(f"r{number}", "retriever", "c") for number in range(MOST_HOPS + 1)]
    rows = [item for _, item in run("langsmith", [span("c", "chain"), *retrievals])]
    assert not any("hop" in row or "response" in row for row in rows if isinstance(row, dict))


def test_a_retrieval_inside_another_is_part_of_it() -> None:
    """As an ensemble of retrievers logs it; an LLM in there rewrites, and does not answer."""
    records = [
        span("outer", "retriever"),
        span("step", "tool", "outer"),
        span("inner", "retriever", "step"),
        span("rewrite", "llm", "step"),
    ]
    (first, row), *others = run("langsmith", records)
    assert (first, row["id"]) == (0, "outer")
    assert "response" not in row
    assert (2, INSIDE) in others


@pytest.mark.parametrize(
    ("start", "parent", "response"),
    [
        ("2026-11-19T08:00:03Z", None, "answer of l"),
        ("2026-11-19T08:00:00Z", None, None),
        ("2026-11-19T08:00:00Z", "above", "answer of l"),
        ("no time", None, "answer of l"),
    ],
)
def test_without_an_answer_of_the_root_the_last_llm_after_the_retrieval_answers(
    start: str, parent: str | None, response: str | None
) -> None:
    """A call before it rewrote the question, unless the retrieval is part of that call."""
    records = [
        span("c", "chain", outputs=None),
        span("r", "retriever", "l" if parent else "c"),
        span("l", "llm", "c", start_time=start),
    ]
    row = next(item for _, item in run("langsmith", records) if isinstance(item, dict))
    assert row.get("response") == response


def test_a_question_that_the_retrieval_lacks_comes_from_the_root() -> None:
    """Vector stores log embeddings; what the user asked stands at the top of the trace."""
    records = [
        span("c", "chain", inputs={"messages": [{"role": "user", "content": "Why?"}]}),
        span("r", "retriever", "c", inputs={"embedding": [0.5]}),
    ]
    row = next(item for _, item in run("langsmith", records) if isinstance(item, dict))
    assert row["user_input"] == "Why?"


def test_a_span_exported_twice_is_one_row() -> None:
    """Exporters send again what was not acknowledged."""
    items = run("langsmith", [span("r", "retriever"), span("r", "retriever")])
    assert [number for number, item in items if isinstance(item, dict)] == [0]
    assert (1, AGAIN) in items


def test_parents_in_a_circle_do_no_harm() -> None:
    """Damaged logs end, too."""
    records = [span("a", "tool", "b"), span("b", "tool", "a"), span("r", "retriever", "a")]
    assert len(run("langsmith", records)) == 3


def test_a_bound_holds_on_open_traces() -> None:
    """The oldest trace is given out where more than the bound are open; late spans are counted."""
    traces = Traces(most_traces=2)
    records = [span(f"r{n}", "retriever", "c", f"t{n}") for n in range(4)]
    records.append(span("c", "chain", None, "t0"))
    given = run("langsmith", records, traces)
    assert [item["id"] for _, item in given if isinstance(item, dict)] == ["r0", "r1", "r2", "r3"]
    assert given[-1] == (4, Skipped("chain run: not a retrieval"))


def test_a_bound_holds_on_the_text_of_open_traces() -> None:
    """However few traces are open: a large one does not stay in memory."""
    traces = Traces(most_text=10_000)
    place = Place("log", 1)
    large = span("r", "retriever", outputs={"documents": [{"text": "x" * 20_000}]})
    (one,) = PRESETS.find("langsmith").read(large)
    assert not isinstance(one, Skipped | BadRow)
    assert len(list(traces.add(place, one))) == 1
    assert list(traces.close()) == []


@given(st.permutations(list(range(9))))
def test_rows_do_not_depend_on_the_order_of_spans(order: list[int]) -> None:
    """Nine spans of three traces in any order: one item each, the same rows."""
    records = [
        part
        for trace in ("a", "b", "c")
        for part in (
            span(f"{trace}c", "chain", None, trace),
            span(f"{trace}r", "retriever", f"{trace}c", trace),
            span(f"{trace}l", "llm", f"{trace}c", trace),
        )
    ]
    items = run("langsmith", [records[number] for number in order])
    rows = {item["id"]: item["response"] for _, item in items if isinstance(item, dict)}
    assert len(items) == 9
    assert rows == {f"{trace}r": f"answer of {trace}c" for trace in ("a", "b", "c")}
