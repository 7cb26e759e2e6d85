"""What the scripts that write pages of the reference share, and the texts of these pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_FOLDER = Path(__file__).parent


def read_parts(name: str) -> dict[str, str]:
    """The text of a page by part: before the first heading of second level under "", then each
    part under its title.
    """
    head, *rest = re.split(r"^## (.*)\n+", (_FOLDER / f"{name}.md").read_text("utf-8"), flags=re.M)
    texts = [one.strip() + "\n" for one in rest[1::2]]
    return {"": head, **dict(zip(rest[::2], texts, strict=True))}


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown, followed by an empty line."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def cell(text: str) -> str:
    """A text as a cell of a table: on one line, with no mark that would end the cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
