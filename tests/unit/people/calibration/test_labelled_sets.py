"""Labelled rows: how labels are read, which are rejected, and what is asked of a judge."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ragmetrics.config import make_settings
from ragmetrics.errors import InputError
from ragmetrics.logs import log_set
from ragmetrics.people.calibration.labelled import LabelledRow, read_labelled
from ragmetrics.people.calibration.labelled_sets import (
    TARGETS,
    LabelledSet,
    LabelQuestion,
    locate,
    read_sets,
    set_name,
)
from ragmetrics.records import BadRow, Rejected
from ragmetrics.text import sentences
from tests.fakes.labelled import make_labelled, relabelled
from tests.fakes.logs import write_jsonl

GOOD = make_labelled(1)[0]


def read(folder: Path, row: dict[str, Any] | str) -> LabelledRow | Rejected:
    """The one row of a file, as it is read."""
    logs = log_set(make_settings({}), str(write_jsonl(folder / "set.jsonl", [row])))
    (found,) = read_labelled(logs)
    return found


def good(folder: Path, row: dict[str, Any]) -> LabelledRow:
    """A row that is not rejected."""
    found = read(folder, row)
    assert isinstance(found, LabelledRow), found
    return found


def asked(folder: Path, metric: str, row: dict[str, Any]) -> list[LabelQuestion]:
    """What a judge is asked about the row for one metric."""
    target = next(target for target in TARGETS if target.metric == metric)
    return target.questions(good(folder, row))


# Reading


def test_reads_the_row_and_its_labels(tmp_path: Path) -> None:
    """The row as any log row; language and run from `meta` where the row itself does not say."""
    found = good(tmp_path, {**GOOD, "tags": {"team": "search"}})
    assert found.row.user_input == "What is the height of tower 0?"
    assert found.row.language == "en"
    assert found.labels.chunk_relevance == (1.0, 0.0)
    assert found.segments == {"team": "search", "run": "first", "language": "en"}


def test_the_documented_example_is_a_labelled_row(tmp_path: Path) -> None:
    """Its spans are those of its sentences, and every label in it is read."""
    text = (Path(__file__).parents[4] / "docs" / "how-to" / "calibrating.md").read_text(
        encoding="utf-8"
    )
    (example,) = re.findall(r"```json\n(\{\n.*?\n\})\n```", text, re.DOTALL)
    row = json.loads(example)
    labels = good(tmp_path, row).labels
    assert set(row["labels"]) == labels.model_fields_set == set(type(labels).model_fields)
    (needed,) = asked(tmp_path, "context_relevancy", row)
    first, second = needed.ask.data["contexts"]
    assert first == {"1": "The old tower is 112 metres tall.", "2": "It is red."}
    assert (second, needed.labels) == ({"3": "Ferries leave every hour."}, (1.0, 0.0, 0.0))


def test_the_rows_own_language_goes_first(tmp_path: Path) -> None:
    """`language` is the field of the row, `meta.lang` where labelled sets have it."""
    assert good(tmp_path, {**GOOD, "language": "de"}).row.language == "de"


def test_a_table_holds_labels_as_json(tmp_path: Path) -> None:
    """In CSV a cell is a text; null where a row has no such label."""
    labels = json.dumps({"chunk_relevance": [1, 0], "relevant_sentences": None})
    found = good(tmp_path, {**GOOD, "labels": labels})
    assert (found.labels.chunk_relevance, found.labels.relevant_sentences) == ((1.0, 0.0), None)


def test_a_table_holds_meta_as_json(tmp_path: Path) -> None:
    """As it does labels; what is no JSON there rejects the row."""
    row = {
        name: json.dumps(value) if name in ("labels", "meta", "retrieved_contexts") else value
        for name, value in GOOD.items()
    }
    with (tmp_path / "set.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerows([row, {**row, "meta": ""}, {**row, "meta": "{"}])
    logs = log_set(make_settings({}), str(tmp_path / "set.csv"))
    found, bare, broken = read_labelled(logs)
    assert isinstance(found, LabelledRow)
    assert found.segments == {"run": "first", "language": "en"}
    assert isinstance(bare, LabelledRow)
    assert bare.segments == {}
    assert isinstance(broken, Rejected)
    assert broken.reason.startswith("meta: not JSON")


def test_without_a_question_the_claim_is_the_cluster(tmp_path: Path) -> None:
    """Rows on one claim are not independent, whatever was retrieved for it."""
    first, same = (good(tmp_path, {**GOOD, "user_input": "", "id": name}) for name in "ab")
    other = good(tmp_path, {**GOOD, "user_input": " ", "reference": "Another."})
    assert first.question == same.question != other.question
    assert good(tmp_path, GOOD).question == good(tmp_path, GOOD).row.question_key


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({"chunk_relevance": [1]}, "chunk_relevance: 1 entries for 2 contexts"),
        ({"sentence_spans": [[]]}, "sentence_spans: 1 entries for 2 contexts"),
        ({"relevant_sentences": [[], [], []]}, "relevant_sentences: 3 entries for 2 contexts"),
        ({"chunk_relevance": [1, 2]}, "chunk_relevance: 2 is not on the scale 0..1"),
        ({"chunk_relevance": ["x", 0]}, "chunk_relevance.0: .* number"),
        ({"chunk_relevance_scale": "high"}, "two numbers, as in 0..1"),
        ({"chunk_relevance_scale": "3..0"}, "should rise"),
        ({"chunk_relevance_scale": "-inf..inf"}, "chunk_relevance_scale.0: .* finite number"),
        ({"chunk_relevance_scale": "0..nan"}, "chunk_relevance_scale.1: .* finite number"),
        ({"chunk_relevance_scale": "-1e308..1e308"}, "chunk_relevance_scale.0: .*1000000000000"),
        ({"chunk_relevance": [float("nan"), 0]}, "chunk_relevance.0: .* finite number"),
        ({"gold": {"char_recall": float("inf")}}, "gold.char_recall: .* finite number"),
        ({"gold": {"char_recall": float("nan")}}, "gold.char_recall: .* finite number"),
        ({"gold": {"char_recall": 1e300}}, "gold.char_recall: .* less than or equal"),
        ({"gold": {"char_recall": -(10**400)}}, "gold.char_recall"),
        ({"relevant_sentences": [[[0, 999]], []]}, r"\[0, 999\] is not within its context"),
        ({"relevant_sentences": [[[5, 2]], []]}, r"\[5, 2\] is not within its context"),
        ({"sentence_spans": [[[0]], []]}, "sentence_spans.0.0"),
        ({"statement_support": [{"text": "It is tall."}]}, "statement_support.0.label: not there"),
        ({"statement_support": [{"text": "Tall.", "label": 2}]}, "statement_support.0.label"),
        ({"gold": {"char_recall": "much"}}, "gold.char_recall"),
    ],
)
def test_malformed_labels_are_rejected_with_the_reason(
    tmp_path: Path, labels: dict[str, Any], reason: str
) -> None:
    """Labels that do not fit their row say so, by name."""
    found = read(tmp_path, relabelled(GOOD, **labels))
    assert isinstance(found, Rejected)
    with pytest.raises(AssertionError, match=f"labels: .*{reason}"):
        raise AssertionError(found.reason)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({**GOOD, "labels": None}, "labels: there is no such object in the row"),
        ({**GOOD, "labels": [1]}, "labels: there is no such object in the row"),
        ({**GOOD, "labels": "{"}, "labels: not JSON"),
        ({"labels": {}}, "user_input: no question"),
        ("[]", "not an object but a list"),
        ("{", "not JSON"),
    ],
)
def test_rows_without_labels_are_rejected(tmp_path: Path, row: Any, reason: str) -> None:
    """And so is what is no row at all."""
    found = read(tmp_path, row)
    assert isinstance(found, Rejected)
    assert found.reason.startswith(reason)


# What is asked


def test_contexts_are_graded_one_by_one(tmp_path: Path) -> None:
    """One question per context; labels are laid on [0, 1]."""
    row = relabelled(GOOD, chunk_relevance=[3, 1], chunk_relevance_scale="0..3")
    first, second = asked(tmp_path, "context_relevance", row)
    context = row["retrieved_contexts"][1]
    assert second.ask.data == {"question": row["user_input"], "context": context}
    assert (first.labels, second.labels) == ((1.0,), (pytest.approx(1 / 3),))
    assert (first.units, second.units) == (("0",), ("1",))


def test_blank_contexts_are_not_graded(tmp_path: Path) -> None:
    """As in the metric, which does not ask about them."""
    row = relabelled(GOOD, sentence_spans=None, relevant_sentences=None)
    (one,) = asked(tmp_path, "context_relevance", {**row, "retrieved_contexts": [" ", "x"]})
    assert one.units == ("1",)


def test_sentences_are_those_of_the_labels(tmp_path: Path) -> None:
    """Numbered from 1 through all contexts; one is needed that overlaps a relevant span."""
    row = {**GOOD, "retrieved_contexts": ["One. Two.", "Three."]}
    row = relabelled(
        row, sentence_spans=[[[0, 4], [5, 9]], [[0, 6]]], relevant_sentences=[[[6, 7]], []]
    )
    (one,) = asked(tmp_path, "context_relevancy", row)
    assert one.ask.data["contexts"] == [{"1": "One.", "2": "Two."}, {"3": "Three."}]
    assert (one.units, one.labels) == (("0:0", "0:1", "1:0"), (0.0, 1.0, 0.0))


def test_without_spans_sentences_are_those_of_our_splitter(tmp_path: Path) -> None:
    """An answer's span makes the sentence needed that holds it, in the row's language."""
    row = {**GOOD, "retrieved_contexts": ["塔很高。它是红色的。", ""], "language": "zh"}
    row = relabelled(row, sentence_spans=None, relevant_sentences=[[[6, 8]], []])
    (one,) = asked(tmp_path, "context_relevancy", row)
    assert one.ask.data["contexts"] == [{"1": "塔很高。", "2": "它是红色的。"}, {}]
    assert one.labels == (0.0, 1.0)


def test_a_span_that_only_touches_a_sentence_does_not_need_it(tmp_path: Path) -> None:
    """The end of a span is the character after its last."""
    row = {**GOOD, "retrieved_contexts": ["One. Two.", ""]}
    spans = [[[0, 4], [4, 9]], []]
    row = relabelled(row, sentence_spans=spans, relevant_sentences=[[[4, 9]], []])
    (one,) = asked(tmp_path, "context_relevancy", row)
    assert one.labels == (0.0, 1.0)


def test_statements_belong_to_reference_or_response(tmp_path: Path) -> None:
    """`statement_source` says which; support in part stays 0.5."""
    said = [{"text": "It is tall.", "label": 0.5}, {"text": "It is red.", "label": 0}]
    row = relabelled(GOOD, statement_support=said)
    (one,) = asked(tmp_path, "context_recall", row)
    assert one.ask.data["sentences"] == ["It is tall.", "It is red."]
    assert one.labels == (0.5, 0.0)
    assert asked(tmp_path, "faithfulness", row) == []
    row = relabelled(row, statement_source="response")
    (one,) = asked(tmp_path, "faithfulness", row)
    assert one.ask.data["statements"] == ["It is tall.", "It is red."]
    assert asked(tmp_path, "context_recall", row) == []


def test_without_a_question_only_support_is_asked(tmp_path: Path) -> None:
    """Relevance is relevance to a question; a claim can be checked without one."""
    row = {**GOOD, "user_input": " "}
    counts = {target.metric: len(asked(tmp_path, target.metric, row)) for target in TARGETS}
    assert counts == {
        "context_relevance": 0,
        "context_relevancy": 0,
        "context_recall": 1,
        "faithfulness": 0,
    }


def test_without_contexts_nothing_is_asked(tmp_path: Path) -> None:
    """The metrics know the answer there."""
    row = relabelled(
        {**GOOD, "retrieved_contexts": []},
        sentence_spans=[],
        relevant_sentences=[],
        chunk_relevance=[],
    )
    assert not any(asked(tmp_path, target.metric, row) for target in TARGETS)


# Finding our sentences in the text


@settings(deadline=None)
@given(st.text(alphabet="ab .!?\n\t。A1", max_size=60))
def test_every_sentence_is_found_where_it_stands(text: str) -> None:
    """Up to blanks, which the splitter may change, and in order."""
    found = sentences(text)
    spans = locate(found, text)
    assert ["".join(text[a:b].split()) for a, b in spans] == ["".join(s.split()) for s in found]
    assert spans == sorted(spans)


def test_a_sentence_that_is_not_in_the_text_is_an_error() -> None:
    """Labels are never laid on text that is not there."""
    with pytest.raises(BadRow, match="not found"):
        locate(["One.", "Two."], "One.")


# Sets


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("data/wiki set.jsonl.gz", "wiki-set"),
        ("s3://bucket/labelled/", "labelled"),
        ("sets/*.jsonl", "sets"),
        ("s3://bucket/set a/*/part-[01].jsonl", "set-a"),
        ("*.jsonl", "labelled"),
        ("/**", "labelled"),
        ("a/b.v2.parquet", "b.v2"),
    ],
)
def test_a_set_is_named_by_its_file_or_folder(place: str, name: str) -> None:
    """In letters that a path can hold; a glob by the folder before its first wildcard."""
    assert set_name(place) == name


def test_rejected_rows_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    """Reasons with counts; a broken file is told apart."""
    bad = relabelled(GOOD, chunk_relevance=[1])
    path = write_jsonl(tmp_path / "set.jsonl", [GOOD, bad, bad, "{"])
    (found,) = read_sets(make_settings({}), [str(path)])
    assert [row.labelled.row.id for row in found.rows] == ["row-0000"]
    assert found.rejected["labels: chunk_relevance: 1 entries for 2 contexts"] == 2
    assert found.rejected.total() == 3


def test_a_file_that_is_cut_short_is_told(tmp_path: Path) -> None:
    """The rows before the cut are used."""
    whole = write_jsonl(tmp_path / "set.jsonl.gz", make_labelled(50))
    whole.write_bytes(whole.read_bytes()[:-20])
    (found,) = read_sets(make_settings({}), [str(whole)])
    assert found.rows
    assert "truncated" in found.broken[0].reason


def test_limit_is_of_rows_that_can_be_used(tmp_path: Path) -> None:
    """Of each set."""
    path = write_jsonl(tmp_path / "set.jsonl", ["{", *make_labelled(5)])
    (found,) = read_sets(make_settings({}), [str(path)], limit=2)
    assert [row.labelled.row.id for row in found.rows] == ["row-0000", "row-0001"]


def test_no_labelled_row_is_an_error_with_the_reason(tmp_path: Path) -> None:
    """As of a log that nobody labelled."""
    path = write_jsonl(tmp_path / "set.jsonl", make_labelled(2, labels=None))
    with pytest.raises(InputError, match=r"no labelled row; labels: there is no such object"):
        read_sets(make_settings({}), [str(path)])


def test_two_sets_of_one_name_are_an_error(tmp_path: Path) -> None:
    """Their results would be taken for one another's."""
    paths = [write_jsonl(tmp_path / folder / "set.jsonl", [GOOD]) for folder in "ab"]
    with pytest.raises(InputError, match="two labelled sets are named set"):
        read_sets(make_settings({}), [str(path) for path in paths])


def test_reasons_are_bounded() -> None:
    """However many ways there are to be wrong, a record stays small."""
    found = LabelledSet("set", "set.jsonl")
    for number in range(200):
        found.reject(Rejected("set.jsonl", number, f"reason {number}"))
    assert len(found.reasons()) == 50
