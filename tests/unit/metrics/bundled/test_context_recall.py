"""context_recall: sentences of the reference that the contexts support; replies played by hand."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings, strategies as st

from ragmetrics.errors import UnreadableReply
from ragmetrics.metrics import SUPPORT, Support
from ragmetrics.metrics.bundled.context_recall import context_recall
from ragmetrics.records import Ask, Score
from tests import builders
from tests.builders import end

REFERENCE = "It was built from 1887 to 1889. Eiffel's company built it. It is tall."
CLAIMS = ["It was built from 1887 to 1889.", "Eiffel's company built it.", "It is tall."]
DATA = {"question": "?", "contexts": ["x"], "sentences": CLAIMS}
VERDICTS = st.lists(st.sampled_from([0, 1]), min_size=1, max_size=8)


a_row = partial(builders.a_row, user_input="Who built it?", reference=REFERENCE)


def supports(*verdicts: int) -> Support:
    """What the judge says of each sentence."""
    return Support.model_validate({"supported": verdicts})


def play(verdicts: list[int]) -> Score:
    """The score of a reference of so many sentences."""
    reference = " ".join(f"Tower number {n} is tall." for n in range(len(verdicts)))
    steps = context_recall.play(a_row("context", reference=reference))
    next(steps)
    return end(steps, supports(*verdicts))


def test_asks_once_about_all_sentences() -> None:
    """One request holds the question, all contexts and the sentences that we split."""
    requests = next(context_recall.play(a_row("one", "two")))
    data = {"question": "Who built it?", "contexts": ["one", "two"], "sentences": CLAIMS}
    assert requests == [Ask(SUPPORT, data)]


def test_value_is_the_share_of_supported_sentences() -> None:
    """Two of three sentences are supported; details say which."""
    steps = context_recall.play(a_row("context"))
    next(steps)
    assert end(steps, supports(1, 0, 1)) == Score(
        2 / 3, details={"attributed": [True, False, True]}
    )


def test_sentences_are_those_of_the_rows_language() -> None:
    """The reference is split by the rules of the row's language."""
    (request,) = next(
        context_recall.play(a_row("x", reference="塔很高。它是红色的。", language="zh"))
    )
    assert request.data["sentences"] == ["塔很高。", "它是红色的。"]


# Empty cases


def test_an_empty_question_is_scored_all_the_same() -> None:
    """The question only helps to understand the sentences: the metric does not need it."""
    steps = context_recall.play(a_row("context", user_input=""))
    next(steps)
    assert end(steps, supports(1, 1, 1)).value == 1.0
    assert context_recall.needs == ("retrieved_contexts", "reference")


# Replies


@pytest.mark.parametrize(
    "reply",
    [
        '{"supported": [1, 0, 1]}',
        'I looked at each:\n```json\n{"supported": [1, 0, 1]}\n```\nDone.',
        '{"supported": [true, false, true]}',
    ],
)
def test_reads_one_verdict_per_sentence(reply: str) -> None:
    """Prose around the object is passed over, and true is as good as 1."""
    assert SUPPORT.parse(reply, DATA).supported == [1, 0, 1]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"supported": [1, 0]}', "2 verdicts for 3 sentences"),
        ('{"supported": [1, 0, 1, 1]}', "4 verdicts for 3 sentences"),
        ('{"supported": []}', "0 verdicts for 3 sentences"),
        ('{"supported": [1, 2, 0]}', "should be 0 or 1"),
        ('{"supported": [1, 0.5, 0]}', "should be 0 or 1"),
        ('{"supported": ["yes", "no", "no"]}', "should be 0 or 1"),
        ('{"supported": 1}', "valid array"),
        ("{}", "not there"),
        ("All of them are supported.", "Invalid JSON"),
    ],
)
def test_any_other_reply_is_unreadable(reply: str, reason: str) -> None:
    """The denominator is ours: not one verdict per sentence, no verdict at all."""
    with pytest.raises(UnreadableReply, match=reason):
        SUPPORT.parse(reply, DATA)


# Properties


@settings(deadline=None)
@given(VERDICTS)
def test_value_is_the_mean_verdict(verdicts: list[int]) -> None:
    """In [0, 1]: 0 where nothing is supported, 1 where all is."""
    assert play(verdicts).value == sum(verdicts) / len(verdicts)


@settings(deadline=None)
@given(VERDICTS, st.data())
def test_one_more_supported_sentence_raises_the_value(
    verdicts: list[int], data: st.DataObject
) -> None:
    """Support for a sentence that had none is worth 1 / n."""
    place = data.draw(st.integers(0, len(verdicts) - 1))
    better = [1 if i == place else verdict for i, verdict in enumerate(verdicts)]
    gain = (play(better).value or 0) - (play(verdicts).value or 0)
    assert gain == pytest.approx((1 - verdicts[place]) / len(verdicts))
