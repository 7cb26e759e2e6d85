"""Formats: each shows every kind of message as people have read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragmetrics.messages import FORMATS
from tests.fakes.every_message import FOLDER, shown


@pytest.mark.parametrize("name", FORMATS.bundled_names)
def test_every_message_is_as_people_have_read_it(name: str) -> None:
    """`python -m tests.fakes.every_message` writes the texts anew."""
    assert shown(name) == (FOLDER / f"{name}.txt").read_text("utf-8")


def test_every_format_has_its_texts() -> None:
    """And no other."""
    assert sorted(path.stem for path in Path(FOLDER).iterdir()) == list(FORMATS.bundled_names)
