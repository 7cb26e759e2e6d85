"""Literals as Python and numpy write them are read as plain values; nothing is run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragmetrics.logs.python_literals import read_literal

_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=10,
)


@given(value=st.lists(_VALUES, max_size=4) | st.dictionaries(_TEXT, _VALUES, max_size=4))
def test_what_python_writes_is_read(value: Any) -> None:
    """Any list or mapping of plain values, as repr and as JSON."""
    assert read_literal(repr(value)) == value
    assert read_literal(json.dumps(value)) == value


def test_a_zero_byte_in_a_text_of_python_is_an_error() -> None:
    """Python refuses such a source, by an error of another kind in some versions."""
    with pytest.raises(ValueError, match="neither JSON nor a Python list"):
        read_literal("['a\0b']")


@given(texts=st.lists(_TEXT, max_size=5))
def test_an_array_of_texts_keeps_its_items(texts: list[str]) -> None:
    """numpy puts no comma between texts, and Python would join them."""
    assert read_literal(str(np.array(texts, dtype=object))) == texts


@given(text=st.text(st.sampled_from("[]{}()'\",: \\nNoTrue1.e-+xnp.float64(")))
def test_no_other_text_is_run_or_breaks(text: str) -> None:
    """It is read as plain values, those of JSON, or it is a ValueError."""
    try:
        found = read_literal(text)
    except ValueError:
        return
    assert repr(json.loads(json.dumps(found))) == repr(found)
