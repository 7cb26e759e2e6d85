"""The layout of a table: names are wrapped and numbers are not, whatever they are."""

from __future__ import annotations

from hypothesis import given, strategies as st

from ragmetrics.messages.table_layout import columns, wrap


@given(st.text(alphabet="ab_:/ +-", max_size=60), st.integers(1, 30))
def test_wrapping_loses_nothing_and_keeps_to_the_width(text: str, width: int) -> None:
    """But spaces at the ends of lines."""
    told = wrap(text, width)
    assert "".join(told.split()) == "".join(text.split())
    assert all(len(line) <= max(width, 1) for line in told.split("\n"))


@given(
    st.lists(st.tuples(st.text("ab_ ", max_size=40), st.integers(0, 10**9)), min_size=1),
    st.integers(10, 100),
)
def test_no_row_loses_its_name_or_its_number(rows: list[tuple[str, int]], room: int) -> None:
    """A row may be several lines high, and the number stands on the first."""
    cells = [("name", "number"), *((name, f"{number:,}") for name, number in rows)]
    head, *lines = columns(cells, [0], room)
    assert head.split("\n")[-1].strip("─") == ""
    assert len(lines) == len(rows)
    for (name, number), text in zip(rows, lines, strict=True):
        first, *further = text.split("\n")
        assert first.endswith(f"{number:,}")
        words = "".join([first.removesuffix(f"{number:,}"), *further])
        assert "".join(words.split()) == "".join(name.split())
