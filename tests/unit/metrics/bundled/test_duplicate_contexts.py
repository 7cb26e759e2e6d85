"""duplicate_contexts: contexts that repeat another one."""

from __future__ import annotations

import pytest

from ragmetrics.errors import InputError
from ragmetrics.metrics.bundled.duplicate_contexts import duplicate_contexts
from ragmetrics.records import LogRow, Score
from tests.fakes.rankings import play

TEXT = "Helmets are lent free of charge at every station with staff, and at no other place here."


def test_equal_texts_are_duplicates_whatever_their_case() -> None:
    """The first of its kind is none; details name the ranks of the others."""
    row = LogRow("1", "Q?", (TEXT, "Another text of five words.", f"  {TEXT.upper()}"))
    assert play(duplicate_contexts, row) == Score(1 / 3, details={"repeated_ranks": [3]})


@pytest.mark.parametrize(
    ("other", "share"), [(f"{TEXT} Yes.", 0.5), ("Helmets are lent for two euros a day.", 0.0)]
)
def test_nearly_equal_texts_share_most_shingles(other: str, share: float) -> None:
    """A word more leaves nearly all runs of four words, another sentence hardly any."""
    assert play(duplicate_contexts, LogRow("1", "Q?", (TEXT, other))).value == share


def test_one_context_repeats_nothing() -> None:
    """Not applicable: a night of short lists would look better."""
    assert play(duplicate_contexts, LogRow("1", "Q?", (TEXT, " "))).value is None


def test_a_share_out_of_range_is_an_error() -> None:
    """The parameter is a resemblance."""
    with pytest.raises(InputError, match="similar_from"):
        play(duplicate_contexts, LogRow("1", "Q?", ()), similar_from=1.5)
