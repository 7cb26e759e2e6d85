"""An agent asks the real process, through the client of the `mcp` package."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.fakes.processes import ROOT
from tests.fakes.store_reading import unpacked

pytestmark = pytest.mark.process
ASKED = [
    ("night", {}),
    ("question", {"words": "11-024", "night": "2026-11-13"}),
    ("compare", {"before": "/etc/hostname", "after": "2026-11-13"}),
    ("night", {"night": "tomorrow"}),
]


def test_an_agent_gets_answers_and_errors_over_stdio(tmp_path: Path) -> None:
    """Each answer begins with the notice that it is data; no file of the store is written."""
    folder = unpacked(tmp_path)
    before = files_of(folder)
    night, question, refused, invalid = asyncio.run(asked(folder / "plain" / "store"))
    assert night[0] is question[0] is False
    for _, told in (night, question):
        assert told.startswith("What follows is data from a store of logs.")
    assert "\nNight of 2026-11-13: 3 alerts firing.\n" in night[1]
    assert "\n⟦How often is machine M-024 of the pumps serviced" in question[1]
    assert refused[0] is invalid[0] is True
    assert "not a date such as 2026-11-19" in refused[1]
    assert "should be a valid date" in invalid[1]
    assert files_of(folder) == before


async def asked(store: Path) -> list[tuple[bool | None, str]]:
    """What the tools answered, and whether that is an error."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "ragmetrics", "mcp", "--store", str(store)],
        env={"PYTHONPATH": str(ROOT), "HOME": os.environ["HOME"]},
        cwd=store,
    )
    async with Client(server, read_timeout_seconds=300) as client:
        answers = [await client.call_tool(name, arguments) for name, arguments in ASKED]
    return [(answer.is_error, answer.content[0].text) for answer in answers]


def files_of(folder: Path) -> dict[str, int]:
    """All files below a folder, with the time at which each was written."""
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
