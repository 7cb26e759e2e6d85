"""A store that an earlier version wrote is read, scored upon, published, alerted on and shown with
the same numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.fakes.clients import JudgeServer
from tests.fakes.slack import SlackServer
from tests.fakes.store_reading import (
    RELEASES,
    Seen,
    number_differences,
    observe,
    text_differences,
    unpacked,
)


@pytest.fixture(scope="module")
def seen(
    judge_process: JudgeServer, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path], Seen]:
    """What the code at hand makes of the store of a release."""

    @cache
    def made(release: Path) -> Seen:
        judge_process.reset()
        folder = unpacked(tmp_path_factory.mktemp("stores"), release / "store.zip")
        with SlackServer().running() as slack:
            return observe(folder, slack, judge_process)

    return made


@pytest.mark.parametrize("release", RELEASES, ids=lambda one: one.name)
def test_every_number_and_state_is_as_it_was(seen: Callable[[Path], Seen], release: Path) -> None:
    """Of nights, alerts, gates, calibrations, batches, comparisons, messages, pages: none changed
    and none is missing.
    """
    expected = (release / "numbers.json").read_text(encoding="utf-8")
    found = number_differences(json.loads(expected), seen(release)[0])
    assert not found, "\n".join(found[:40])


def test_texts_read_as_they_were_reviewed(seen: Callable[[Path], Seen]) -> None:
    """Where wording was changed on purpose: python -m scripts.make_store_fixture texts."""
    found = text_differences(seen(RELEASES[-1])[1])
    assert not found, "\n".join(found[:40])


def test_another_number_is_found() -> None:
    """One that changed, one that is missing; one more is no difference."""
    expected = {"mean": 0.5, "nights": [{"n": 1}]}
    assert number_differences(expected, {"mean": 0.5, "nights": [{"n": 1, "more": 2}]}) == []
    assert len(number_differences(expected, {"mean": 0.5001, "nights": [{}]})) == 2
