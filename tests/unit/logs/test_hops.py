"""Hops: the rows of one trace are one question with the contexts of all its retrievals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragmetrics.logs import LogSet, ReadCounts, find_logs
from ragmetrics.logs.hops import JOINED, MOST_HOPS, Hops, joined
from ragmetrics.records import LogRow, Rejected
from tests.fakes.logs import write_jsonl


def hop(number: int, contexts: tuple[str, ...], trace: str = "t", **more: object) -> LogRow:
    """The row of a hop."""
    fields = {"trace_id": trace, "hop": number, **more}
    return LogRow(f"row-{number}", f"query {number}", contexts, **fields)  # type: ignore[arg-type]


def read(*files: Path, preset: str | None = None) -> tuple[list[LogRow], ReadCounts]:
    """The rows of logs in a folder, and what reading counted."""
    store, infos = find_logs(str(files[0].parent))
    counts = ReadCounts()
    rows = LogSet(store, infos, preset=preset).read(counts)
    return [row for row in rows if not isinstance(row, Rejected)], counts


def test_rows_of_a_trace_with_hops_are_one_row(tmp_path: Path) -> None:
    """In a log of our own layout: interleaved, in any order, and counted as joined."""
    lines = [
        {"user_input": "Where was she born?", "retrieved_contexts": ["b", "c"], "hop": 2},
        {"user_input": "other", "retrieved_contexts": ["x"]},
        {"user_input": "Who wrote it?", "retrieved_contexts": ["a"], "hop": 1, "response": "Rome"},
    ]
    log = tmp_path / "log.jsonl"
    write_jsonl(log, [{**line, "trace_id": "t"} if "hop" in line else line for line in lines])
    (other, row), counts = read(log)
    assert other.user_input == "other"
    assert (row.id, row.user_input, row.response) == ("t", "Who wrote it?", "Rome")
    assert row.retrieved_contexts == ("a", "b", "c")
    assert [tuple(part) for part in row.hops] == [
        ("Who wrote it?", ("a",)),
        ("Where was she born?", ("b", "c")),
    ]
    assert counts.skipped == {JOINED: 1}


@pytest.mark.parametrize("lacks", ["hop", "trace_id"])
def test_rows_without_a_hop_or_a_trace_stay_as_they_are(lacks: str, tmp_path: Path) -> None:
    """A shared trace alone may be a batch or a session: nights of single retrievals keep all."""
    row = {"user_input": "q", "retrieved_contexts": ["a"], "trace_id": "t", "hop": 1}
    del row[lacks]
    log = tmp_path / "log.jsonl"
    write_jsonl(log, [row, row])
    rows, counts = read(log)
    assert [row.hops for row in rows] == [[("q", ("a",))]] * 2
    assert not counts.skipped


def test_a_single_retrieval_that_found_nothing_is_one_hop() -> None:
    """Pages and metrics show it as an empty retrieval."""
    assert LogRow("1", "q", ()).hops == [("q", ())]


def test_spans_of_a_preset_are_joined_by_their_trace(tmp_path: Path) -> None:
    """An agent's two retrievals are one row with its question, its answer and its root span."""
    spans = [
        {
            "id": name,
            "trace_id": "t",
            "parent_run_id": None if name == "root" else "root",
            "run_type": "chain" if name == "root" else "retriever",
            "start_time": f"2026-11-19T08:00:0{second}Z",
            "inputs": {"question": f"{name}?"},
            "outputs": {"answer": "Rome"} if name == "root" else {"documents": [{"text": name}]},
        }
        for second, name in enumerate(["root", "who", "where"])
    ]
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, reversed(spans))))
    (row,), counts = read(tmp_path / "runs.jsonl", preset="langsmith")
    assert (row.user_input, row.response, row.span_id) == ("root?", "Rome", "root")
    assert row.hops == [("who?", ("who",)), ("where?", ("where",))]
    assert counts.skipped[JOINED] == 1


def test_ids_and_scores_are_kept_where_all_hops_have_them() -> None:
    """Else nobody could say which context an id belongs to; a hop that found nothing has none."""
    one, two = hop(1, ("a",), retrieved_context_ids=("1",)), hop(2, ("b",))
    named = hop(2, ("b",), retrieved_context_ids=("2",))
    assert joined([one, two]).retrieved_context_ids is None
    assert joined([one, named, hop(3, ())]).retrieved_context_ids == ("1", "2")
    assert joined([one, named, hop(3, ())]).hop_sizes == (1, 1, 0)


def test_a_tag_with_several_values_has_all_of_them() -> None:
    """Hops often have their own retriever, and share the rest."""
    rows = [
        hop(1, (), tags={"retriever": "web", "app": "x"}),
        hop(2, (), tags={"retriever": "faq"}),
    ]
    assert joined(rows).tags == {"retriever": "web, faq", "app": "x"}


def test_a_batch_in_one_trace_stays_apart() -> None:
    """More retrievals than an answer takes are questions of their own."""
    hops, rows = Hops(10, 10_000), [hop(number, ("a",)) for number in range(MOST_HOPS + 1)]
    assert not [read for row in rows for read in hops.add("t", row, None)]
    assert [row for row, _ in hops.close()] == rows


def test_open_traces_are_bounded() -> None:
    """By their number and by their text: the oldest is returned first."""
    hops = Hops(1, 10_000)
    assert list(hops.add("one", hop(1, ("a",), "one"), None)) == []
    assert [row.trace_id for row, _ in hops.add("two", hop(1, ("a",), "two"), None)] == ["one"]
    large = hop(2, ("x" * 20_000,), "two")
    assert [row.hop_sizes for row, _ in hops.add("two", large, None)] == [(1, 1)]
    assert list(hops.close()) == []
