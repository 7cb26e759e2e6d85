"""The profile of `make test-fast` has its number of examples for every property."""

from __future__ import annotations

import re

import pytest
from hypothesis import settings

from tests.fakes.examples import examples
from tests.fakes.processes import ROOT

FEW = settings.get_profile("fast").max_examples


def test_a_profile_with_fewer_examples_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """But a property of fewer than those keeps its number."""
    monkeypatch.setattr("tests.fakes.examples.settings", lambda: settings(max_examples=FEW))
    assert [examples(number) for number in (5, 40, 300)] == [5, FEW, FEW]


def test_the_usual_profile_changes_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the usual hundred are tried where a property asks for them."""
    monkeypatch.setattr("tests.fakes.examples.settings", lambda: settings(max_examples=5 * FEW))
    assert [examples(number) for number in (5, 40, 300)] == [5, 40, 300]


def test_no_property_has_more_examples_than_the_profile_whatever_it_says() -> None:
    """In tests/unit, which the profile is for, a larger number is an argument of `examples`."""
    larger = {
        f"{file.relative_to(ROOT)}: {number}"
        for file in (ROOT / "tests" / "unit").rglob("*.py")
        for number in re.findall(r"max_examples=(\d+)", file.read_text(encoding="utf-8"))
        if int(number) > FEW
    }
    assert larger == set()
