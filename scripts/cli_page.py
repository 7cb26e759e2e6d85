"""Writes docs/reference/cli.md from the commands themselves; a test compares the two.

python -m scripts.cli_page
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from ragmetrics.cli.app import COMMANDS, app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"

_HEAD = """\
# Command line

This page lists every command with its arguments and options. `python -m scripts.cli_page` writes it
from the commands; `ragmetrics COMMAND --help` shows the same.

Exit codes, unless a command says more: 0 done, 1 done and something needs a look, 2 wrong input,
130 stopped by Ctrl-C.
"""

_TYPE = re.compile(r"<(list\[)?(\w+)[^>]*>")
_NOTE = re.compile(
    r"\s*\[(?:default: (?P<default>[^\[\]]*)|required|x[<>][^\[\]]*|[^\[\]]*<=x[^\[\]]*)\]$"
)


def page() -> str:
    """The whole page."""
    group: Any = typer.main.get_command(app)
    context = group.make_context("ragmetrics", ["check"], resilient_parsing=True)
    names = ", ".join(f"[{name}](#ragmetrics-{name})" for name in COMMANDS)
    parts = [_HEAD, names + "\n"]
    for name in COMMANDS:
        parts += _entries(f"ragmetrics {name}", group.commands[name], context)
    return "\n".join(parts)


def _entries(name: str, command: Any, parent: Any) -> Iterator[str]:
    """The section of a command, or those of a group."""
    context = type(parent)(command, info_name=name.rpartition(" ")[2], parent=parent)
    yield f"## {name}\n" if name.count(" ") == 1 else f"### {name}\n"
    yield _text(command.help) + "\n"
    children = getattr(command, "commands", None)
    if children:
        for child, own in children.items():
            yield from _entries(f"{name} {child}", own, context)
        return
    pieces = (piece for one in command.params for piece in one.get_usage_pieces(context))
    usage = re.sub(r"[{}]", "", " ".join(pieces)).replace("[[", "[").replace("]]", "]")
    yield f"```text\n{name} [OPTIONS] {usage}".rstrip() + "\n```\n"
    records = [one.get_help_record(context) for one in command.params if one.name != "help"]
    lines = [_line(*one) for one in records if one]
    if lines:
        yield "\n".join(["| option | meaning | default |", "|---|---|---|", *lines, ""])


def _line(names: str, meaning: str) -> str:
    """A line of the table: the option with its value, what it means, its default."""
    plain = _TYPE.sub(lambda found: found[2].upper(), names)
    plain = plain if plain.startswith("-") else plain.rpartition(" ")[0] or plain
    text, default = " ".join(meaning.split()), ""
    while note := _NOTE.search(text):
        text = text[: note.start()]
        default = f"`{note['default']}`" if note["default"] else default
    return f"| `{plain}` | {text} | {default} |"


def _text(text: str | None) -> str:
    """A help text as paragraphs of Markdown."""
    return inspect.cleandoc(text or "").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
