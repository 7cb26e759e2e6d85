"""ragas_context_recall: ragas 0.1's share of attributed statements; replies played by hand."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.errors import Unanswered, UnreadableReply
from ragmetrics.judges import Corpus
from ragmetrics.judges.word_overlap import Overlap
from ragmetrics.metrics.bundled.ragas_context_recall import ATTRIBUTION, ragas_context_recall
from ragmetrics.records import Ask, LogRow, Score, Status, Text
from tests import builders
from tests.builders import end

# What ragas 0.1.10 itself makes of these texts: `_create_context_recall_prompt`, sha256.
AWKWARD = LogRow(
    id="row-1",
    user_input='What does "{answer}" mean, {question}?\n2nd line',
    retrieved_contexts=('Ærø: \\n "quoted" {context}', "塔は{}赤い。\n\ttab"),
    reference="Ref {reference}\n%s",
)
RAGAS_TEXT = "4f86e956cbb1eba5"


a_row = partial(builders.a_row, user_input="When?", reference="In 1889. In May.")


def listed(*attributed: Any) -> str:
    """A reply with so many statements."""
    items = [{"statement": "So.", "reason": "Seen.", "attributed": one} for one in attributed]
    return json.dumps(items)


def play(reply: str, row: LogRow | None = None) -> Score:
    """The score that a reply gives."""
    steps = ragas_context_recall.play(row or a_row("one", "two"))
    next(steps)
    return end(steps, Text(text=reply))


def test_asks_once_about_the_whole_reference() -> None:
    """Contexts are joined by a line break; the judge is to cut the reference."""
    data = {"question": "When?", "context": "one\ntwo", "answer": "In 1889. In May."}
    assert next(ragas_context_recall.play(a_row("one", "two"))) == [Ask(ATTRIBUTION, data)]


def test_sends_the_very_words_of_ragas() -> None:
    """One user turn, equal byte by byte, braces and quotes in the data included."""
    ((request,),) = (next(ragas_context_recall.play(AWKWARD)),)
    (turn,) = request.prompt.messages(request.data)
    assert turn["role"] == "user"
    assert hashlib.sha256(turn["content"].encode()).hexdigest()[:16] == RAGAS_TEXT


def test_value_is_the_share_of_attributed_statements() -> None:
    """Two of three statements; details hold them."""
    found = play(listed(1, 0, 1))
    assert found == Score(
        2 / 3, details={"statements": ["So."] * 3, "attributed": [True, False, True]}
    )


# Quirks


def test_the_denominator_is_the_judges() -> None:
    """The reference has two sentences; one statement returned is all there is, five are five."""
    assert play(listed(1)).value == 1.0
    assert play(listed(1, 1, 0, 0, 0)).value == 0.4


def test_nothing_compares_the_statements_with_the_reference() -> None:
    """Invented statements count like any other."""
    reply = '[{"statement": "Cats purr.", "reason": "They do.", "attributed": 1}]'
    assert play(reply).value == 1.0


@pytest.mark.parametrize(
    ("attributed", "counts"),
    [
        *((one, True) for one in (1, 2, -1, True, "1", 1.9)),
        *((one, False) for one in (0, False, "0", 0.9)),
    ],
)
def test_attributed_is_cut_to_a_whole_number_and_anything_but_0_counts(
    attributed: Any, counts: bool
) -> None:
    """As pydantic 1 reads an integer."""
    assert play(listed(attributed)).value == float(counts)


def test_no_statement_returned_is_no_score() -> None:
    """ragas gives NaN; here the status says why there is no number."""
    expected = Score(None, "the judge returned no statement", status=Status.UNREADABLE)
    assert play("[]") == expected


@pytest.mark.parametrize("contexts", [(), ("",)])
def test_nothing_retrieved_is_asked_all_the_same(contexts: tuple[str, ...]) -> None:
    """ragas shows the judge an empty context."""
    assert play(listed(0, 0), a_row(*contexts)).value == 0.0
    assert play(listed(1), a_row(*contexts, user_input="")).value == 1.0


# Empty cases


def test_no_reply_leaves_the_row_unanswered() -> None:
    """Unanswered goes up to the driver, which makes it a status."""
    steps = ragas_context_recall.play(a_row("one"))
    next(steps)
    with pytest.raises(Unanswered, match="no JSON"):
        steps.send([Unanswered(Status.UNREADABLE, "no JSON")])


# Replies


@pytest.mark.parametrize(
    "form",
    [
        "{}",
        "```{}```",
        "```json\n{}\n```",
        "Of [1] I think:\n```json\n{}\n```\nDone [2].",
        "The list: {} That is all [sic].",
    ],
)
def test_reads_the_first_list(form: str) -> None:
    """A fence marked as JSON goes first; what follows the list is passed over."""
    assert ATTRIBUTION.parse(form.replace("{}", listed(1, 0)), {})
    assert play(form.replace("{}", listed(1, 0))).value == 0.5


def test_raw_line_breaks_inside_strings_pass() -> None:
    """Models write them; ragas reads them."""
    assert play('[{"statement": "a\nb", "reason": "\t", "attributed": 1}]').value == 1.0


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("All of them are attributed.", "no JSON"),
        ("", "no JSON"),
        (listed(1, 0)[:-3], "no JSON"),
        ("[" * 100_000, "no JSON"),
        ('{"statements": []}', "valid list"),
        ('[{"statement": "So.", "attributed": 1}]', "0.reason: not there"),
        ('[{"statement": "So.", "reason": "x", "attributed": "yes"}]', "0.attributed"),
        ('[{"statement": null, "reason": "x", "attributed": 1}]', "0.statement"),
        ('[{"statement": "So.", "reason": "x", "attributed": Infinity}]', "0.attributed"),
    ],
)
def test_any_other_reply_is_unreadable(reply: str, reason: str) -> None:
    """It is asked again, where ragas asks for a repair."""
    with pytest.raises(UnreadableReply, match=reason):
        ATTRIBUTION.parse(reply, {})


def test_the_embedded_judge_attributes_sentences() -> None:
    """Its baseline judges our sentences in ragas's form."""
    assert ATTRIBUTION.baseline is not None
    data = {"question": "?", "context": "Towers are tall.", "answer": "Towers are tall. Cats purr."}
    reply = ATTRIBUTION.baseline(data, Overlap(Corpus()))
    assert ATTRIBUTION.parse(reply.text, data) == reply
    assert play(reply.text).details["attributed"] == [True, False]


# Properties


@given(st.lists(st.integers(0, 1), min_size=1))
def test_value_is_the_mean_verdict_in_any_order(verdicts: list[int]) -> None:
    """In [0, 1]; the order of statements does not matter."""
    expected = sum(verdicts) / len(verdicts)
    assert play(listed(*verdicts)).value == play(listed(*sorted(verdicts))).value == expected
