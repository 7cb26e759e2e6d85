"""Writes docs/reference/cli.md from the commands themselves; a test compares the two.

python -m scripts.cli_page
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer

from ragmetrics.cli.app import COMMANDS, app
from scripts.pages import cell, table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"

_HEAD = """\
# Command line

This page lists every command with its arguments and options. `python -m scripts.cli_page` writes it
from the commands; `ragmetrics COMMAND --help` shows the same.

Exit codes, unless a command says more: 0 done, 1 done and something needs a look, 2 wrong input,
130 stopped by Ctrl-C.
"""

_VALUES = {int: "NUMBER", float: "NUMBER", Path: "PATH"}


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
        for child, inner in children.items():
            yield from _entries(f"{name} {child}", inner, context)
        return
    shown = [param for param in command.params if param.name != "help" and not param.hidden]
    arguments = " ".join(_argument(one) for one in shown if one.param_type_name == "argument")
    yield f"```text\n{name} [OPTIONS] {arguments}".rstrip() + "\n```\n"
    if shown:
        types = get_type_hints(inspect.unwrap(command.callback))
        rows = [
            (f"`{_name(param, types[param.name])}`", cell(param.help or ""), _default(param))
            for param in shown
        ]
        yield table(("option", "meaning", "default"), rows)


def _name(one: Any, annotation: Any) -> str:
    """An option with its value, or an argument."""
    if one.param_type_name == "argument":
        return _argument(one).strip("[]")
    names = ", ".join([*one.opts, *one.secondary_opts])
    return names if one.is_flag else f"{names} {one.metavar or _value(annotation)}"


def _value(annotation: Any) -> str:
    """`NUMBER`, or the words to choose from."""
    inner = [one for one in get_args(annotation) if one is not type(None)]
    if get_origin(annotation) is Literal:
        return "\\|".join(inner)
    return _value(inner[0]) if inner else _VALUES.get(annotation, "TEXT")


def _argument(one: Any) -> str:
    """An argument as in the usage: in brackets if it may be left out, with dots if it repeats."""
    name = (one.metavar or str(one.name)).strip("[].").upper()
    name = f"{name}..." if one.nargs == -1 else name
    return name if one.required else f"[{name}]"


def _default(one: Any) -> str:
    if one.required:
        return "required"
    if one.default in (None, False, (), []) or callable(one.default):
        return ""
    return f"`{str(one.default).lower() if one.default is True else one.default}`"


def _text(text: str | None) -> str:
    """A help text as paragraphs of Markdown."""
    return inspect.cleandoc(text or "").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
