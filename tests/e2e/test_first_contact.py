"""From eight logs of as many layouts to an alert that names the section that was lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragmetrics.config import load_settings
from ragmetrics.logs import find_inputs
from ragmetrics.records import LogRow
from tests.fakes.command import Ended, Run
from tests.fakes.first_logs import (
    FIRST_LOGS,
    LAST,
    LOST,
    ROWS,
    Write,
    langsmith_export,
    many_days,
    nights,
    postgres_csv,
)

WHOLE = (langsmith_export, postgres_csv, many_days)
"""Traces and a table in a file a night, and rows of all nights in one file."""
OTHERS = [write for write in FIRST_LOGS if write not in WHOLE]


def next_commands(made: Ended) -> list[list[str]]:
    """The commands that `init` prints, at most four."""
    assert made.code == 0, made.out + made.err
    _, _, after = made.out.partition("Next:")
    commands = [line.split()[1:] for line in after.splitlines() if "ragmetrics" in line]
    assert len(commands) <= 4
    return commands


@pytest.mark.parametrize("write", WHOLE, ids=lambda write: write.__name__)
def test_a_planted_fall_is_seen_in_four_commands(write: Write, run: Run) -> None:
    """`init --yes`, then the commands that it prints, in their order; nothing is edited. The alert
    names the section, in the message and on the page.
    """
    commands = next_commands(run("init", write(Path.cwd()), "--yes"))
    ended = {command[0]: run(*command) for command in commands if command[0] != "dashboard"}
    assert ended["backfill"].code == 0, ended["backfill"].out + ended["backfill"].err
    night = ended["nightly"]
    assert night.code == 1, night.out + night.err
    assert f"Rows: {ROWS}, quarantined: 0" in night.out
    message = night.out.partition("message")[2]
    assert " fell" in message.partition("What:")[0]
    assert f"={LOST}" in message
    assert run("dashboard").code == 0
    page = Path(f"ragmetrics-store/dashboard/{LAST}/index.html").read_text("utf-8")
    assert f"={LOST}" in page


@pytest.mark.parametrize("write", OTHERS, ids=lambda write: write.__name__)
def test_other_layouts_give_the_same_rows_in_each_night(write: Write, run: Run) -> None:
    """By the settings of `init --yes`, which then prints the same commands: texts, and the section
    that the alert names.
    """
    commands = next_commands(run("init", write(Path.cwd()), "--yes"))
    assert {"backfill", "nightly"} <= {command[0] for command in commands}
    settings = load_settings("ragmetrics.yaml")
    for day, asked in nights():
        rows = [row for log in find_inputs(settings, day).logs for row in log.read()]
        logged = {
            (row.user_input, tuple(row.retrieved_contexts or ()), row.response, row.tags["section"])
            for row in rows
            if isinstance(row, LogRow)
        }
        assert len(rows) == ROWS
        assert logged == {
            (row.question, tuple(row.passages), row.answer, row.section) for row in asked
        }
