"""Durations as settings have them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import SettingsError
from ragmetrics.scoring.run_summary import public_settings
from ragmetrics.text.numbers import duration_text, read_duration


@given(st.integers(1, 30 * 86_400))
def test_a_duration_is_read_as_it_is_written(seconds: int) -> None:
    """In whole seconds, up to 30 days."""
    duration = timedelta(seconds=seconds)
    assert read_duration(duration_text(duration)) == duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("20h", 72_000), ("90m", 5_400), ("1h30m", 5_400), (" 45s ", 45), ("1d", 86_400)],
)
def test_what_a_deadline_may_be(text: str, seconds: int) -> None:
    """A number and a unit, once or several times."""
    assert make_settings({"deadline": text}).deadline == timedelta(seconds=seconds)


@pytest.mark.parametrize("value", ["", "20", 20, 1.5, None, "20 h", "-1h", "0s", "31d", "9" * 40])
def test_what_it_may_not_be_is_told(value: Any) -> None:
    """With the key, and what it should be like."""
    with pytest.raises(SettingsError, match=r"deadline: .*(20h|30d)"):
        make_settings({"deadline": value})


def test_a_night_ends_before_the_next_by_default() -> None:
    """Four hours are left for publishing."""
    assert Settings().deadline == timedelta(hours=20)


def test_it_is_shown_as_it_is_written() -> None:
    """With a night, and in what is kept of the settings."""
    assert public_settings(make_settings({"deadline": "90m"}))["deadline"] == "1h30m"


def test_the_environment_may_say_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As any other setting."""
    monkeypatch.setenv("RAGMETRICS_DEADLINE", "2h")
    assert make_settings({}).deadline == timedelta(hours=2)
