"""From eight logs of as many layouts to an alert that names the section that was lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.command import Run
from tests.fakes.first_logs import FIRST_LOGS, LAST, LOST, ROWS, Write


@pytest.mark.parametrize("write", FIRST_LOGS, ids=lambda write: write.__name__)
def test_a_planted_fall_is_seen_in_four_commands(write: Write, run: Run) -> None:
    """`init --yes`, then the commands that it prints, in their order; nothing is edited. The alert
    names the section, in the message and on the page.
    """
    made = run("init", write(Path.cwd()), "--yes")
    assert made.code == 0, made.out + made.err
    _, _, after = made.out.partition("Next:")
    commands = [line.split()[1:] for line in after.splitlines() if "ragmetrics" in line]
    assert len(commands) <= 4
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
