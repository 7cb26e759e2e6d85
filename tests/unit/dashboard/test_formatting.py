"""Names in anchors and links: readable where they can be, and never those of another."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from ragmetrics.dashboard.formatting import anchor


@given(st.text(max_size=120), st.text(max_size=120))
def test_two_names_have_two_anchors(one: str, other: str) -> None:
    """In whatever script they are; each is safe in an address."""
    assert (anchor(one) == anchor(other)) == (one == other)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", anchor(one))


def test_a_plain_name_is_its_own_anchor() -> None:
    """So a link to a metric can be written by hand."""
    assert anchor("context_recall") == "context_recall"


def test_names_without_a_latin_letter_differ() -> None:
    """As tags in other scripts do, or names that are long and begin alike."""
    assert len({anchor(name) for name in ("地域", "言語", "-", "x" * 81, "x" * 82)}) == 5


def test_nobody_can_take_the_anchor_of_another_name() -> None:
    """Not by naming a tag as that anchor either."""
    assert anchor(anchor("地域")) != anchor("地域")
