"""Progress: counted by family, shown on a terminal among log lines, never in the way of a night."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect.logging.handlers import PrefectConsoleHandler
from rich.console import Console

from flows import progress
from flows.progress import Label, watching
from ragmetrics.scoring import Part
from tests.fakes.logs import NIGHT

LABEL = Label("towers", str(NIGHT))
GRADES = ("context_relevance", "context_precision")
PARTS: list[Part] = [(names, shard) for names in (GRADES, ("context_recall",)) for shard in (0, 1)]


class Shelf:
    """Where artifacts go, in place of a server."""

    def __init__(self) -> None:
        self.keys: dict[UUID, str | None] = {}
        self.told: list[tuple[str | None, float, str]] = []
        self.broken = False

    def create(self, percent: float, key: str | None, description: str) -> UUID:
        """As Prefect's."""
        made = uuid4()
        self.keys[made] = key
        self.update(made, percent, description)
        return made

    def update(self, artifact: UUID, percent: float, description: str) -> None:
        """As Prefect's."""
        if self.broken:
            raise ConnectionError("no server")
        self.told.append((self.keys[artifact], percent, description))


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """Artifacts are put here; every change is due at once."""
    made = Shelf()
    monkeypatch.setattr(progress, "create_progress_artifact", made.create)
    monkeypatch.setattr(progress, "update_progress_artifact", made.update)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    monkeypatch.setattr(progress, "get_run_logger", lambda: logging.getLogger("flow"))
    return made


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Prefect's console, as it is where a person looks at it."""
    screen = io.StringIO()
    handler = PrefectConsoleHandler(stream=screen)
    themed: Any = handler.console
    handler.console = Console(
        file=screen, force_terminal=True, width=100, theme=None, highlighter=themed.highlighter
    )
    handler.setFormatter(logging.Formatter("LOG %(message)s"))
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    yield screen


def test_each_family_has_an_artifact_that_grows(shelf: Shelf) -> None:
    """From nothing to the whole, with how many parts of it are there and how many failed."""
    with watching(Label("help desk", str(NIGHT)), PARTS) as watch:
        for number, part in enumerate(PARTS):
            watch.ended(part, scored=number != 3)
    recall = [one[1:] for one in shelf.told if str(one[0]).endswith("-context-recall")]
    assert recall == [
        (0.0, f"context_recall: 0 of 2 shards of {NIGHT}"),
        (50.0, f"context_recall: 1 of 2 shards of {NIGHT}"),
        (100.0, f"context_recall: 2 of 2 shards of {NIGHT}, 1 of them not scored"),
    ]
    assert set(shelf.keys.values()) == {
        "ragmetrics-help-desk-night-progress-context-relevance-context-precision",
        "ragmetrics-help-desk-night-progress-context-recall",
    }


def test_a_gate_shows_nothing_in_the_place_of_a_night(shelf: Shelf) -> None:
    """Nor does a backfill: each has keys of its own, of signs that Prefect takes."""
    labels = [
        Label("Help_Desk", str(NIGHT)),
        Label("Help_Desk", "Build_42", "gate"),
        Label("Help_Desk", str(NIGHT), "backfill"),
    ]
    for label in labels:
        with watching(label, PARTS[2:]):
            pass
    assert list(shelf.keys.values()) == [
        "ragmetrics-help-desk-night-progress-context-recall",
        "ragmetrics-help-desk-gate-progress-context-recall",
        "ragmetrics-help-desk-backfill-progress-context-recall",
    ]
    assert shelf.told[1][2] == "context_recall: 0 of 2 shards of Build_42"


def test_a_rerun_of_an_older_night_shows_nothing_in_the_place_of_the_newest(shelf: Shelf) -> None:
    """Its progress is on its own page alone: without a key."""
    with watching(Label("towers", str(NIGHT), keyed=False), PARTS[2:]):
        pass
    assert list(shelf.keys.values()) == [None]


def test_the_server_is_not_asked_for_every_part(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts that end within seconds are told of together, and the last one always."""
    monkeypatch.setattr(progress, "EVERY", 3_600.0)
    parts: list[Part] = [(("context_recall",), shard) for shard in range(50)]
    with watching(LABEL, parts) as watch:
        for part in parts:
            watch.ended(part, scored=True)
    assert [percent for _, percent, _ in shelf.told] == [0.0, 100.0]


def test_a_server_that_takes_none_is_logged_once(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    """The night goes on, and the server is left alone for a while."""
    shelf.broken = True
    with watching(LABEL, PARTS) as watch:
        for part in PARTS:
            watch.ended(part, scored=True)
    assert [record.message for record in caplog.records] == [
        "progress is not shown for 60 s: no server"
    ]


@pytest.mark.usefixtures("shelf")
def test_a_terminal_has_a_bar_per_family_between_whole_log_lines(terminal: io.StringIO) -> None:
    """What Prefect logs meanwhile stands above the bars, line by line."""
    log = logging.getLogger("prefect.night")
    with watching(LABEL, PARTS) as watch:
        for part in PARTS:
            watch.ended(part, scored=True)
            log.warning("ended %s", part[1])
    shown = terminal.getvalue()
    assert "context_relevance + context_precision" in shown
    assert "2/2" in shown
    assert [line for line in shown.splitlines() if "LOG" in line] and shown.count("LOG ended") == 4
    for line in shown.splitlines():
        assert "LOG" not in line or "context_recall" not in line


@pytest.mark.usefixtures("shelf")
def test_of_several_nights_at_once_one_has_the_terminal(terminal: io.StringIO) -> None:
    """As in a backfill, where the first may well end before the second; the next has it again."""
    first = watching(LABEL, PARTS)
    second = watching(LABEL, [(("hit_rate",), 0)])
    first.__enter__()
    second.__enter__().ended((("hit_rate",), 0), scored=True)
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert "context_recall" in terminal.getvalue()
    assert "hit_rate" not in terminal.getvalue()
    with watching(LABEL, [(("mrr",), 0)]):
        pass
    assert "mrr" in terminal.getvalue()


@pytest.mark.usefixtures("shelf")
def test_no_terminal_no_bars(capsys: pytest.CaptureFixture[str]) -> None:
    """A worker's log is not filled with them."""
    with watching(LABEL, PARTS) as watch:
        watch.ended(PARTS[0], scored=True)
    assert capsys.readouterr() == ("", "")
