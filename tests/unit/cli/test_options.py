"""What commands share: each that can use settings reads `ragmetrics.yaml` of the folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from ragmetrics.cli.app import app
from tests.builders import save_settings
from tests.fakes.command import Run
from tests.fakes.logs import make_rows, write_jsonl

WITHOUT = ["demo", "prompts export", "metrics", "schema"]
"""Commands that no setting concerns."""
WRITES = ["init"]
"""A file that cannot be read is not completed."""
VALUES = {
    **dict.fromkeys(("first", "date"), "2026-11-19"),
    "night": "2026-11-19",
    "language": "de",
    "command": "compare",
}


def commands(group: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """All commands by their words, those of groups too."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        else:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands(typer.main.get_command(app)))


def least(words: str, log: Path) -> list[str]:
    """A command with what it requires, and two logs where it may have them."""
    arguments = words.split()
    for parameter in COMMANDS[words].params:
        if parameter.required or (words == "gate" and parameter.name in ("before", "after")):
            value = VALUES.get(parameter.name, str(log))
            arguments += [parameter.opts[0]] if parameter.param_type_name == "option" else []
            arguments.append(value)
    return arguments


@pytest.mark.parametrize("words", sorted({*COMMANDS} - {*WITHOUT, *WRITES}))
def test_each_command_reads_the_settings_of_the_folder(
    run: Run, words: str, tmp_path: Path
) -> None:
    """Without --settings. Its complaint names the file and the key."""
    log = write_jsonl(tmp_path / "log.jsonl", make_rows(3))
    save_settings(Path.cwd(), {"no_such_key": 1})
    ended = run(*least(words, log))
    assert ended.code in (1, 2)
    assert "ragmetrics.yaml: no_such_key" in " ".join(ended.err.split())


@pytest.mark.parametrize("words", ["score", "check", "compare", "gate"])
def test_commands_that_need_no_settings_name_the_file_that_they_read(
    run: Run, words: str, tmp_path: Path
) -> None:
    """Else nobody would know where the metrics come from."""
    log = write_jsonl(tmp_path / "log.jsonl", make_rows(30))
    other = write_jsonl(tmp_path / "other.jsonl", make_rows(30))
    named = [log, other] if words in ("compare", "gate") else [log]
    assert "Settings:" not in run(words, *named).out
    save_settings(Path.cwd(), {"metrics": ["context_recall"]})
    assert "\nSettings: ragmetrics.yaml\n" in run(words, *named).out
