"""Numbers as people read them."""

from __future__ import annotations

import pytest

from ragmetrics.text import short_change


@pytest.mark.parametrize(
    ("before", "now", "shown"),
    [
        (0.879, 0.637, "fell from 0.88 to 0.64"),
        (0.884, 0.876, "fell from 0.884 to 0.876"),
        (0.0481, 0.0463, "fell from 0.048 to 0.046"),
        (0.0484, 0.0481, "fell from 0.0484 to 0.0481"),
        (12.4, 11.6, "fell from 12.4 to 11.6"),
        (1_200.0, 1_100.0, "fell from 1,200 to 1,100"),
        (9.5, 12.0, "rose from 9.50 to 12"),
        (0.88, 0.88, "is unchanged at 0.88"),
        (12.0, 12.0, "is unchanged at 12"),
        (0.88001, 0.88, "is unchanged at 0.880"),
    ],
)
def test_a_change_has_a_digit_more_where_its_ends_look_alike(
    before: float, now: float, shown: str
) -> None:
    """And nothing fell where they still do."""
    assert short_change(before, now, fell=True) == shown
