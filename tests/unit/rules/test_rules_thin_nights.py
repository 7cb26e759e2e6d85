"""Nights with too few rows: their alert fires for want of data, and no drop is known of them."""

from __future__ import annotations

import pytest

from tests.fakes.past import (
    NOISY,
    a_night,
    fallen,
    metric_findings,
    recall,
    scores,
    story,
    uneven,
)

THIN = NOISY[:14]
"""Fewer rows than a rule needs."""


def test_a_thin_night_leaves_no_min_alert_behind() -> None:
    """`clear` is for a mean that was below the limit; this one never was."""
    told = story(recall(min=0.7, clear=0.85), NOISY, THIN, NOISY)
    assert [(one.level, one.state) for one in told] == [
        ("ok", "ok"),
        ("no_data", "firing"),
        ("ok", "ok"),
    ]


def test_a_firing_alert_still_needs_its_clear_value_after_a_thin_night() -> None:
    """What fell before the thin night is not forgotten over it."""
    told = story(recall(min=0.7, clear=0.85), [0.3, 0.5] * 20, THIN, NOISY)
    assert [one.level for one in told] == ["breach", "no_data", "suspect"]


def test_after_thin_nights_a_drop_is_seen_on_the_second_full_one() -> None:
    """A segment that grows: its first full night is the measure of the next, however many thin ones
    came before, and the alert for want of data resolves."""
    told = story(recall(max_drop=0.05), *[THIN] * 3, NOISY, fallen(0.3), fallen(0.3))
    assert [(one.level, one.state) for one in told[2:]] == [
        ("no_data", "firing"),
        ("ok", "ok"),
        ("breach", "firing"),
        ("breach", "firing"),
    ]
    assert told[3].transition == "resolved"


def test_a_thin_night_is_no_measure() -> None:
    """One row of the night before says nothing of tonight; the full night before that does."""
    told = story(recall(max_drop=0.05), NOISY, NOISY[:1], fallen(0.3))
    assert (told[-1].level, told[-1].baseline_label) == ("breach", "2026-11-17")


def test_a_suspect_after_a_thin_night_is_a_suspect() -> None:
    """There was no alarm that the nights since could bear out or not."""
    found = story(recall(max_drop=0.05), [0.5] * 20, [0.5] * 10, uneven(0.1))[-1]
    assert found.level == "suspect"
    assert "bear the alarm out" not in found.message


@pytest.mark.parametrize("versus", ["previous", "trailing:7"])
def test_a_drop_that_stays_is_not_lost_over_a_thin_night(versus: str) -> None:
    """The spell goes on: neither the thin night nor the bad one becomes the measure."""
    rule = recall(max_drop=0.05, versus=versus)
    told = story(rule, NOISY, fallen(0.3), THIN, fallen(0.3))
    assert [one.level for one in told] == ["ok", "breach", "no_data", "breach"]
    assert told[-1].since == told[1].since
    assert told[-1].baseline == pytest.approx(0.8)


def test_values_that_never_had_enough_rows_are_told_to_nobody() -> None:
    """A tag of a hundred customers with three rows each: nothing was ever to be watched there."""
    customers = [f"c{place % 100}" for place in range(300)]
    nights = [a_night(scores([0.8] * 300, customer=customers), ago=ago) for ago in (1, 0)]
    found = metric_findings(recall(min=0.7, by="customer"), *nights[::-1])
    assert {(one.level, one.compared) for one in found} == {("ok", False)}
    assert found[0].message == "context_recall of customer=c0: 3 rows scored, 20 needed"


def test_a_value_that_had_enough_rows_and_has_few_is_no_data() -> None:
    """It was watched the night before, and is not any more."""
    before = a_night(scores(NOISY * 2, section=["a"] * 40 + ["b"] * 40), ago=1)
    tonight = a_night(scores([*NOISY, *NOISY[:5]], section=["a"] * 40 + ["b"] * 5))
    found = metric_findings(recall(min=0.7, by="section"), tonight, before)
    assert [one.level for one in found] == ["ok", "no_data"]
