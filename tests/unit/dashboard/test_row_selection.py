"""Which rows of a night are kept, and what earlier nights retrieved for their questions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragmetrics.dashboard.row_loader import load_rows
from ragmetrics.dashboard.row_selection import (
    FELL,
    EarlierNight,
    RowTable,
    became,
    pick_rows,
    unique_keys,
)
from ragmetrics.errors import StoreError
from ragmetrics.records import LogRow, Manifest, MovedContext, Score, Status, WorstRow
from ragmetrics.scoring import load_scores
from ragmetrics.storage import (
    ROW_SCHEMA,
    SCORE_SCHEMA,
    Files,
    PartWriter,
    RunRef,
    row_record,
    score_record,
    workspace,
)
from tests.fakes.clients import Bucket
from tests.fakes.nights import night, summary

RECALL = "context_recall"


def table(values: Sequence[float | None], questions: Sequence[str] = ()) -> RowTable:
    """Rows of one shard with a value by one metric, each of a question of its own."""
    names = [f"row-{i}" for i in range(len(values))]
    column = np.array([np.nan if value is None else value for value in values])
    places = [(0, i) for i in range(len(values))]
    return RowTable(places, names, questions or names, {RECALL: column})


def worst_at(position: int) -> WorstRow:
    """A row that the manifest names."""
    return WorstRow(id="x", metric=RECALL, value=0.0, user_input="?", position=position)


class TestPicking:
    def test_worst_rows_come_first_then_fallen_then_a_sample(self) -> None:
        """The order is that in which rows get room."""
        found = pick_rows(
            table([0.9, 0.1, 0.0, 0.8]), [worst_at(2)], {RECALL: {"row-1": 0.6, "row-3": 0.8}}
        )
        kinds = [[why.kind for why in reasons] for reasons in found.values()]
        assert kinds == [["worst"], ["fell"], ["sample"], ["sample"]]
        assert list(found)[:2] == [(0, 2), (0, 1)]

    def test_a_fall_says_from_what_to_what(self) -> None:
        """A row may be both worst and fallen; it stands once, with both reasons."""
        found = pick_rows(table([0.1]), [worst_at(0)], {RECALL: {"row-0": 0.6}})
        (reasons,) = found.values()
        assert [(why.kind, why.value, why.before) for why in reasons] == [
            ("worst", 0.0, None),
            ("fell", 0.1, 0.6),
        ]

    def test_where_lower_is_better_a_rise_is_a_fall(self) -> None:
        """What got worse counts, whichever way the metric goes."""
        before = {RECALL: {"row-0": 0.1, "row-1": 0.9}}
        found = pick_rows(table([0.8, 0.2]), [], before, {RECALL})
        assert [r[0].kind for r in found.values()] == ["fell", "sample"]

    def test_each_fallen_question_is_told_once(self) -> None:
        """Copies of one question do not crowd out the others."""
        rows = table([0.0] * 30 + [0.5], ["a"] * 30 + ["b"])
        found = pick_rows(rows, [], {RECALL: {"a": 1.0, "b": 1.0}})
        fell = [place for place, why in found.items() if why[0].kind == "fell"]
        assert fell == [(0, 0), (0, 30)]

    def test_new_and_unscored_questions_did_not_fall(self) -> None:
        """There is nothing to hold them against."""
        found = pick_rows(table([None, 0.0]), [], {RECALL: {"row-0": 1.0}})
        assert {why[0].kind for why in found.values()} == {"sample"}

    @given(st.lists(st.floats(0, 1) | st.none(), max_size=60), st.integers(0, 40))
    def test_there_are_never_more_than_wanted(self, values: list[float | None], most: int) -> None:
        """No more than `most`, all rows where there are fewer; the same at every call."""
        before = {RECALL: {f"row-{i}": 1.0 for i in range(60)}}
        found = pick_rows(table(values), [], before, most=most)
        assert len(found) == min(most, len(values))
        assert found == pick_rows(table(values), [], before, most=most)
        assert sum(why[0].kind == "fell" for why in found.values()) <= FELL

    def test_the_sample_does_not_depend_on_the_order_of_rows(self) -> None:
        """It is drawn by ids: a rerun that reads files in another order shows the same rows."""
        rows = table([0.5] * 100)
        turned = RowTable(rows.places, rows.ids[::-1], rows.questions[::-1], rows.values)
        some = {rows.ids[at] for _, at in pick_rows(rows, [], {}, most=10)}
        assert some == {turned.ids[at] for _, at in pick_rows(turned, [], {}, most=10)}

    def test_unscored_rows_come_last(self) -> None:
        """Of a night that judged a sample, rows without any score say little."""
        found = pick_rows(table([None] * 50 + [0.5]), [], {}, most=1)
        assert list(found) == [(0, 50)]


def test_repeated_ids_have_keys_of_their_own() -> None:
    """The first has its id, the others count; what no address can hold is cleaned."""
    assert unique_keys(["a", "b", "a", "\x00\ud800"]) == ["a", "b", "a~2", "␀�"]
    assert unique_keys(["a", "a", "a~2", "a"]) == ["a", "a~2", "a~2~2", "a~3"]


class Store:
    """A store with the rows and scores of nights."""

    def __init__(self, root: str) -> None:
        self.files = Files(root)

    def add(self, number: int, *rows: tuple[LogRow, float | None]) -> Manifest:
        """A night of these rows, each with its recall."""
        scored = sum(value is not None for _, value in rows)
        made = night(number, metrics=[summary(RECALL, 0.5, scored=scored)])
        ref = RunRef.of(made)
        with workspace() as folder:
            logged = PartWriter(folder, ROW_SCHEMA)
            scores = PartWriter(folder, SCORE_SCHEMA)
            for row, value in rows:
                status = Status.SCORED if value is not None else Status.UNREADABLE
                logged.add(row_record(row))
                scores.add(score_record(row, Score(value, status=status)))
            logged.finish(self.files, ref.rows(0))
            scores.finish(self.files, ref.scores(RECALL, 0))
        return made

    def kept(self, now: Manifest, *earlier: Manifest) -> list[Any]:
        """The rows that are kept of a night."""

        def load(one: Manifest, metric: str) -> Any:
            return load_scores(self.files, RunRef.of(one), metric)

        return load_rows(self.files, now, earlier, load)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(str(tmp_path))


def row(name: str, question: str, *contexts: str, **change: Any) -> LogRow:
    """A row with contexts named by their own first letters."""
    ids = tuple(text[:1] for text in contexts)
    return LogRow(name, question, contexts, retrieved_context_ids=ids, **change)


class TestEarlierNight:
    def test_contexts_left_came_and_moved(self, store: Store) -> None:
        """The same question is found by its hash, whatever its case, and its contexts diffed."""
        before = store.add(0, (row("n0", "How?", "a one", "b two", "c three"), 0.9))
        now = store.add(1, (row("n1", "how ", "b two", "d four", "c 3"), 0.2))
        (kept,) = store.kept(now, before)
        (then,) = kept.earlier
        assert (then.date, then.values) == (date(2026, 11, 10), {RECALL: 0.9})
        assert {context.id: became(context) for context in then.contexts} == {
            "a": "left",
            "b": "moved",
            "c": "rewritten",
            "d": "came",
        }
        assert [why.kind for why in kept.why] == ["fell"]

    def test_of_several_rows_the_one_of_the_same_id_is_shown(self, store: Store) -> None:
        """A golden question that is asked each night under one id is held against itself."""
        before = store.add(0, (row("x", "How?", "a"), 0.1), (row("n", "How?", "b"), 0.9))
        (kept,) = store.kept(store.add(1, (row("n", "How?", "b"), 0.9)), before)
        assert kept.earlier[0].words == "the same passages in the same order"

    def test_contexts_are_those_of_the_newest_three_nights(self, store: Store) -> None:
        """A night without the question is passed over; of older nights there are values alone."""
        asked = (row("n", "How?", "a"), 0.5)
        nights = [
            store.add(0, asked),
            store.add(1, asked),
            store.add(2, (row("n", "Why?", "a"), 0.5)),
            store.add(3, asked),
        ]
        (kept,) = store.kept(store.add(4, asked), *nights)
        assert [then.date.day for then in kept.earlier] == [13, 11]
        assert [(then.date.day, then.values, then.contexts) for then in kept.older] == [
            (10, {RECALL: 0.5}, ())
        ]

    def test_values_go_back_a_week(self, store: Store) -> None:
        """Six earlier nights and tonight."""
        asked = (row("n", "How?", "a"), 0.5)
        nights = [store.add(number, asked) for number in range(8)]
        (kept,) = store.kept(nights[-1], *nights[:-1])
        assert len(kept.earlier) + len(kept.older) == 6

    def test_values_of_another_judge_are_left_out(self, store: Store) -> None:
        """What was retrieved can be compared all the same."""
        other = summary(RECALL, 0.5, judge="another")
        before = store.add(0, (row("n", "How?", "a"), 0.9)).model_copy(update={"metrics": [other]})
        (kept,) = store.kept(store.add(1, (row("n", "How?", "b"), 0.1)), before)
        assert kept.earlier[0].values == {}
        assert kept.earlier[0].words == "1 left, 1 came"
        assert [why.kind for why in kept.why] == ["sample"]

    def test_earlier_rows_may_be_gone(self, store: Store) -> None:
        """Where somebody removed a night's parts, the others are shown."""
        before = store.add(0, (row("n", "How?", "a"), 0.9))
        store.files.remove(RunRef.of(before).rows(0))
        (kept,) = store.kept(store.add(1, (row("n", "How?", "b"), 0.9)), before)
        assert kept.earlier == ()

    def test_a_night_whose_rows_are_gone_keeps_none(self, store: Store) -> None:
        """Its numbers are in the manifest, its page says what it can."""
        now = store.add(0, (row("n", "How?", "a"), 0.9))
        store.files.remove(RunRef.of(now).rows(0))
        assert store.kept(now) == []

    def test_a_bucket_is_read_like_a_folder(self, s3: Bucket) -> None:
        """The earlier nights side by side."""
        store = Store(f"{s3.uri}/store")
        nights = [store.add(n, (row("n", "How?", "a"), 0.9)) for n in range(3)]
        (kept,) = store.kept(store.add(3, (row("n", "How?", "b"), 0.1)), *nights)
        assert [then.values[RECALL] for then in kept.earlier] == [0.9] * 3
        store.files.remove(RunRef.of(nights[1]).rows(0))
        (kept,) = store.kept(store.add(3, (row("n", "How?", "b"), 0.1)), *nights)
        assert [then.date.day for then in kept.earlier] == [12, 10]

    def test_damaged_rows_are_an_error(self, store: Store) -> None:
        """A part that is there and cannot be read is not taken for one that was removed."""
        now = store.add(0, (row("n", "How?", "a"), 0.9))
        store.files.write(RunRef.of(now).rows(0), b"PAR1 spoilt")
        with pytest.raises(StoreError, match="is damaged"):
            store.kept(now)


def test_a_night_in_words() -> None:
    """Counts of what happened, in one line."""
    left = MovedContext(text="", rank_a=1, rank_b=None)
    moved = MovedContext(text="", rank_a=2, rank_b=1)
    assert EarlierNight(date(2026, 11, 1), None, {}, (left, moved, left)).words == "2 left, 1 moved"
