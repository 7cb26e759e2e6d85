"""Formats: each shows every kind of message, and in none does a text of a log act."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragmetrics.messages import FORMATS, Block, Header, Note, Section, bullets, links, table
from tests.fakes.every_message import FOLDER, shown

HOSTILE = (
    "<!channel> @everyone <script>alert(1)</script>\x1b[31m\u202e [a](javascript:1) | *b* `c`\n"
    "# head\n- item https://evil.example #1 &amp; \x00"
)


@pytest.mark.parametrize("name", FORMATS.bundled_names)
def test_every_message_is_as_people_have_read_it(name: str) -> None:
    """`python -m tests.fakes.every_message` writes the texts anew."""
    assert shown(name) == (FOLDER / f"{name}.txt").read_text("utf-8")


def test_every_format_has_its_texts() -> None:
    """And no other."""
    assert sorted(path.stem for path in Path(FOLDER).iterdir()) == list(FORMATS.bundled_names)


@pytest.mark.parametrize("name", FORMATS.bundled_names)
def test_a_hostile_text_is_one_line_without_controls(name: str) -> None:
    """In every block of every format, and it is there as text."""
    form = FORMATS.find(name)
    blocks: list[Block] = [
        Header(HOSTILE),
        Note(HOSTILE),
        Section(HOSTILE, HOSTILE, (HOSTILE,), ((HOSTILE[:40], HOSTILE[:40]),)),
        *bullets(HOSTILE, [HOSTILE]),
        *table(HOSTILE, (HOSTILE, "n"), [(HOSTILE, HOSTILE)]),
        *links([(HOSTILE, "s3://bucket/x")]),
    ]
    for block in blocks:
        rendered = form.render([block])
        text = rendered if isinstance(rendered, str) else json.dumps(rendered, ensure_ascii=False)
        assert not set(text) & set("\x00\x1b\u202e"), name
        assert "\n- item" not in text and "\n# head" not in text
        assert "alert(1)" in text.replace("\\", "").replace("&#40;", "(").replace("&#41;", ")")


@pytest.mark.parametrize("name", FORMATS.bundled_names)
def test_what_has_no_room_is_left_out(name: str) -> None:
    """Whole parts of it."""
    blocks = [Note(f"line {number}") for number in range(60)]
    form = FORMATS.find(name)
    whole, cut = form.render(blocks), form.render(blocks, 40)
    assert len(cut) <= 40 < len(form.render(blocks[:60])) or len(whole) == 50
