"""docs/tutorial/index.md, followed to the letter by somebody with an empty home.

Every command is run, in its order, and has to print what the page shows; every named block of
text has to stand on the dashboard's page of that name. Only the installation is not as the
reader's, because tests have no index of packages: the environment that is here takes its place.
"""

from __future__ import annotations

import html
import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.fakes.console import Terminal, blocks
from tests.fakes.processes import ROOT

pytestmark = pytest.mark.process

DOCUMENT = ROOT / "docs/tutorial/index.md"
INSTALL = ["make install", ". .venv/bin/activate"]
_NOT_SHOWN = re.compile(r"<(script|style)\b.*?</\1>|</?span\b[^>]*>", re.DOTALL)
"""A span is within a word or a line."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of somebody who did all that the page says."""
    home = tmp_path_factory.mktemp("home")
    terminal = Terminal(home, environment(home))
    here, installed = home / "help-centre", []
    for block in blocks(DOCUMENT):
        if block.kind == "text":
            page = visible_text(here / block.name)
            for line in block.text.splitlines():
                assert line in page, f"{block.name} does not show: {line}"
        elif block.kind != "console":
            (here / block.name).write_text(block.text, encoding="utf-8")
        else:
            for command in block.commands:
                if command.line in INSTALL:
                    installed.append(command.line)
                else:
                    terminal.run(command)
    assert installed == INSTALL
    return home


def environment(home: Path) -> dict[str, str]:
    """The reader's environment, with the product that is here."""
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "COLUMNS": "80",
        "LANG": "C.UTF-8",
        "TERM": "xterm",
    }


def visible_text(page: Path) -> str:
    """The text of a page as a browser shows it, with single spaces."""
    shown = _NOT_SHOWN.sub("", page.read_text(encoding="utf-8"))
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", shown)).split())
    return re.sub(r" ([.,:)])", r"\1", text)


def test_the_tutorial_does_what_it_says(home: Path) -> None:
    """All commands print what is shown; one night fires, and the next one resolves."""
    runs = sorted((home / "help-centre/ragmetrics-store/runs").glob("*/*.json"))
    nights = [json.loads(path.read_text()) for path in runs]
    recall = "help-centre/context_recall/all/max_drop 0.06 versus trailing:7"
    told = [
        next((one["transition"] for one in night["findings"] if one["key"] == recall), "no rule")
        for night in nights
    ]
    assert told == [None, None, None, "fired", "resolved"]


def test_the_tutorial_is_short() -> None:
    """A newcomer reads it in one sitting, with its code."""
    assert len(DOCUMENT.read_text(encoding="utf-8").split()) <= 1300
