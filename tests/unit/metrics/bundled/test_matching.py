"""What the metrics without a judge share: how relevance is told, empty cases and parameters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.errors import InputError
from ragmetrics.metrics import Metric, metrics
from ragmetrics.metrics.bundled._matching import SIMILAR_FROM, similarity
from ragmetrics.records import Score, Status
from tests.fakes.rankings import a_row, by_ids, play

NAMES = ("id_recall", "id_precision", "hit_rate", "mrr", "ndcg")
ALL = pytest.mark.parametrize("metric", [metrics()[name] for name in NAMES], ids=NAMES)
RECALL = metrics()["id_recall"]

TOWER = "The Eiffel Tower was opened to the public on 15 May 1889."
BRIDGE = "The bridge over the Forth was finished in the following year."
LONG = f"It rained in Paris. {TOWER} Two million people came to see it within half a year."
IDS = {"retrieved_context_ids": ("a", "b"), "reference_context_ids": ("a",)}
TEXTS = {"reference_contexts": (TOWER,)}


# Ids or text


@ALL
def test_ids_come_before_text(metric: Metric) -> None:
    """Where both sides have ids, texts are not looked at, unless asked for."""
    row = a_row(BRIDGE, BRIDGE, **IDS, **TEXTS)
    assert play(metric, row).details["matched_by"] == "ids"
    assert play(metric, row).value
    assert play(metric, row, match="text").details["matched_by"] == "text"
    assert play(metric, row, match="text").value == 0.0


@ALL
@pytest.mark.parametrize("missing", ["retrieved_context_ids", "reference_context_ids"])
def test_text_stands_in_where_ids_are_missing(metric: Metric, missing: str) -> None:
    """Ids on one side only say nothing; details say what the value rests on."""
    row = a_row(LONG, **{**IDS, **TEXTS, missing: None})
    found = play(metric, row)
    assert found.value == 1.0
    assert found.details["matched_by"] == "text"
    assert found.details["similarities"] == [1.0]


def test_ids_count_even_without_contexts() -> None:
    """A log may hold ids alone, and another number of them than of contexts."""
    assert play(RECALL, by_ids(["x", "a"], ["a"])).value == 1.0
    assert play(RECALL, a_row("one context", **IDS)).value == 1.0


def test_a_blank_id_is_no_reference() -> None:
    """Two missing ids are not equal ids."""
    assert play(RECALL, by_ids(["", "a"], ["", "a", "b"])).value == 1 / 2
    assert play(RECALL, by_ids([""], [" "])).status == Status.NOT_APPLICABLE


# Empty cases


@ALL
@pytest.mark.parametrize(
    ("fields", "match", "reason"),
    [
        ({}, "auto", "no reference_context_ids, no reference_contexts"),
        ({"reference_context_ids": ("a",)}, "auto", "no retrieved_context_ids, no reference_c"),
        ({"retrieved_context_ids": ("a",)}, "auto", "no reference_context_ids, no reference_c"),
        ({**IDS, "reference_context_ids": ()}, "auto", "no reference_context_ids, no reference_c"),
        ({**IDS, "retrieved_context_ids": ()}, "ids", "no retrieved_context_ids"),
        (TEXTS, "ids", "no reference_context_ids"),
        (IDS, "text", "no reference_contexts"),
        ({"reference_contexts": ("", " \n", "...")}, "text", "no reference_contexts"),
    ],
)
def test_what_is_lacking_is_named(
    metric: Metric, fields: dict[str, Any], match: str, reason: str
) -> None:
    """Without references, or without their counterpart in the row, there is no value."""
    found = play(metric, a_row(TOWER, **fields), match=match)
    assert (found.value, found.status) == (None, Status.NOT_APPLICABLE)
    assert found.reason.startswith(reason)


def test_a_row_of_ids_alone_has_no_text_to_compare() -> None:
    """That is a gap in the log, not a retriever that found nothing."""
    row = a_row(retrieved_context_ids=("a",), reference_contexts=(TOWER,))
    assert play(RECALL, row).reason == "no reference_context_ids, no retrieved_contexts"


@ALL
@pytest.mark.parametrize(
    ("fields", "by"), [({"reference_context_ids": ("a",)}, "ids"), (TEXTS, "text")]
)
@pytest.mark.parametrize("k", [None, 5])
def test_nothing_retrieved_is_zero(
    metric: Metric, fields: dict[str, Any], by: str, k: int | None
) -> None:
    """There was something to be found, and nothing was."""
    found = play(metric, a_row(**fields), k=k)
    assert (found.value, found.reason) == (0.0, "nothing retrieved")
    assert found.details["matched_by"] == by


@ALL
def test_blank_contexts_hold_nothing(metric: Metric) -> None:
    """They were retrieved all the same: 0.0."""
    found = play(metric, a_row("", " \n", **TEXTS))
    assert (found.value, found.reason) == (0.0, "no relevant context")


# Parameters


@ALL
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k": 0}, "k: 0 is not a whole number from 1 on"),
        ({"k": -3}, "k: -3 is not"),
        ({"k": "10"}, "k: should be a valid integer"),
        ({"k": True}, "k: should be a valid integer"),
        ({"match": "id"}, "match: should be 'auto', 'ids' or 'text'"),
        ({"similar_from": 0}, "similar_from: 0 is not above 0 and at most 1"),
        ({"similar_from": 70}, "similar_from: 70 is not"),
        ({"similar_from": "0.7"}, "similar_from: should be a valid number"),
    ],
)
def test_a_parameter_out_of_range_is_an_error(
    metric: Metric, parameters: dict[str, Any], message: str
) -> None:
    """It names the metric, the parameter and what it may be."""
    with pytest.raises(InputError, match=f"^{metric.name}: {message}"):
        next(metric.with_parameters(parameters).play(by_ids(["a"], ["a"])))


def test_cut_offs_in_the_details_stop_at_k_and_at_what_was_retrieved() -> None:
    """Several cut-offs in one pass: the usual ones that the value itself looks at."""
    row = by_ids([str(n) for n in range(12)], ["4", "99"])
    at = {"1": 0.0, "3": 0.0, "5": 0.5, "10": 0.5}
    assert play(RECALL, row).details["at"] == at
    assert play(RECALL, row, k=4).details["at"] == {"1": 0.0, "3": 0.0}
    assert play(RECALL, row, k=500).details["at"] == at


# Similarity of texts


@pytest.mark.parametrize(
    ("reference", "context"),
    [
        (TOWER, TOWER),
        (TOWER, LONG),
        (TOWER, TOWER.upper().replace(" ", "\n  ")),
        (TOWER, "The Eiffel-Tower was **opened** to the public, on 15 May 1889"),
        ("Ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
        ("Grüße aus Köln", "GRU\u0308SSE aus Ko\u0308ln"),
        ("塔于1889年对公众开放。", "众所周知，塔于1889年\n对公众开放。它很高。"),
        ("หอคอยเปิดในปี", "รู้กันว่าหอคอยเปิดในปี 1889"),
        ("كُتِبَ الكتاب", "قيل كتب الكتاب قديما"),
        ("42", "It is 42."),
        ("塔", "高塔"),
    ],
)
def test_what_is_there_whole_is_held_whole(reference: str, context: str) -> None:
    """Whatever stands around it, in any script, case, width, spacing and punctuation."""
    assert similarity(reference, context) == 1.0


@pytest.mark.parametrize(
    ("reference", "context"),
    [
        (TOWER, BRIDGE),
        ("塔于1889年对公众开放。", "大桥在第二年完工，国王前来参观。"),
        ("42", "41"),
        ("塔", "桥"),
    ],
)
def test_other_texts_are_not_held(reference: str, context: str) -> None:
    """What two texts of one language share by chance stays far below the default."""
    assert similarity(reference, context) < SIMILAR_FROM / 2


def test_small_differences_are_forgiven() -> None:
    """A misspelt word, another date: still the same passage."""
    assert similarity(TOWER, LONG.replace("Tower", "Towr").replace("15", "16")) > SIMILAR_FROM


def test_a_part_is_not_the_whole() -> None:
    """A context that is a piece of the reference holds that share of it: the way matters."""
    assert similarity(LONG, TOWER) < 0.5
    assert similarity(TOWER, LONG) == 1.0
    row = a_row(TOWER, reference_contexts=(LONG,))
    assert play(RECALL, row).value == 0.0
    assert play(RECALL, row, similar_from=0.3).value == 1.0


def test_a_short_reference_may_pass_for_another() -> None:
    """As id_recall's docstring warns, with this very value: there ids are needed, or more."""
    reference, context = "The warranty lasts 24 months.", "The warranty lasts 36 months."
    assert similarity(reference, context) == pytest.approx(16 / 21)
    assert "by 0.76)" in RECALL.description
    row = a_row(context, reference_contexts=(reference,))
    assert (play(RECALL, row).value, play(RECALL, row, similar_from=0.9).value) == (1.0, 0.0)


def test_scattered_words_are_not_a_passage() -> None:
    """A long context has every word of a reference somewhere: they must stand together."""
    filler = " ".join(f"item{n} listed{n * 7}" for n in range(60))
    scattered = filler.join(f" {word} " for word in TOWER.split())
    assert similarity(TOWER, scattered) < SIMILAR_FROM
    assert similarity(TOWER, f"{filler} {TOWER} {filler}") == 1.0


@pytest.mark.parametrize("unit", ["hello", "a", "塔", "the tower of the tower in the "])
def test_huge_texts_are_compared_in_linear_time(unit: str) -> None:
    """A quarter of a million letters that repeat themselves: the worst for edit distances."""
    text = unit * (250_000 // len(unit))
    assert similarity(text, f"x{text[: len(text) // 2]}y{text}") == 1.0


def test_an_unpaired_surrogate_is_a_letter_like_any() -> None:
    """Logs hold broken text."""
    assert similarity("broken \ud800 text here", "all of the broken \ud800 text here") == 1.0


def test_equal_references_count_once() -> None:
    """Equal up to case and spaces, as texts are compared."""
    row = a_row(LONG, reference_contexts=(TOWER, TOWER.upper(), BRIDGE))
    found = play(RECALL, row)
    assert found == Score(
        1 / 2,
        details={
            "matched_by": "text",
            "similarities": [1.0, found.details["similarities"][1]],
            "relevant_ranks": [1],
            "at": {"1": 1 / 2},
        },
    )


def by_definition(reference: str, context: str) -> float:
    """The share of the reference's runs of four in the best two neighbouring cells."""
    starts = range(len(context) - 3)
    cells = range(len(context) // len(reference) + 1)
    wanted = {reference[i : i + 4] for i in range(len(reference) - 3)}
    there = [{context[i : i + 4] for i in starts if i // len(reference) == c} for c in cells]
    pairs = zip(there, [*there[1:], set()], strict=True)
    return max(len(wanted & (one | other)) / len(wanted) for one, other in pairs)


@given(st.text("ab塔", min_size=4, max_size=12), st.text("ab塔", max_size=60))
def test_similarity_is_that_of_its_definition(reference: str, context: str) -> None:
    """Few letters make many repeats: still each run counts once, within its stretch."""
    assert similarity(reference, context) == by_definition(reference, context)


def test_similarity_of_long_texts_is_exact() -> None:
    """Numbers stand for the runs on the way, and no two runs are taken for one."""
    squares = "".join(str(n**2) for n in range(2_000))
    cubes = "".join(str(n**3) for n in range(2_000))
    words = "".join(f"{n:x}" for n in range(60_000, 64_000))
    assert similarity(squares, cubes) == by_definition(squares, cubes)
    assert similarity(words, squares) == by_definition(words, squares)


def test_a_context_counts_from_the_limit_on() -> None:
    """A reference that is there whole is found even where nothing less will do."""
    assert play(RECALL, a_row(LONG, **TEXTS), similar_from=1).value == 1.0
    assert play(RECALL, a_row(LONG.replace("15", "16"), **TEXTS), similar_from=1).value == 0.0


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_similarity_is_a_share(before: str, reference: str, after: str) -> None:
    """In [0, 1] for any texts, and 1 for a text with letters within any other."""
    assert 0 <= similarity(reference, before) <= 1
    if any(sign.isascii() and sign.isalnum() for sign in reference):
        assert similarity(f"{reference}", f"{before} {reference} {after}") == 1.0
