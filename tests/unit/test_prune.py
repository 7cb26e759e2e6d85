"""`ragmetrics prune`: what a store loses with time, and what it keeps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.errors import InputError
from ragmetrics.pipeline import Prunable, Retention, find_prunable, prune, run_night
from ragmetrics.storage import Files, nights, open_store
from tests.fakes.command import Run
from tests.fakes.logs import make_rows, write_jsonl

FIRST = date(2026, 3, 1)
SECOND = FIRST + timedelta(days=1)
RETENTION = Retention(timedelta(days=400), timedelta(days=90))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Two nights; the first was run twice, as more of its logs came late."""
    folder = tmp_path_factory.mktemp("made")
    settings = make_settings(
        {
            "logs": f"{folder}/logs/{{date}}/",
            "store": str(folder / "store"),
            "metrics": ["context_recall"],
        }
    )
    for day in (FIRST, SECOND):
        write_jsonl(folder / "logs" / str(day) / "a.jsonl", make_rows(12, night=day))
        run_night(settings, day)
    write_jsonl(folder / "logs" / str(FIRST) / "b.jsonl", make_rows(3, night=FIRST))
    run_night(settings, FIRST)
    return settings


@pytest.fixture
def settings(made: Settings, tmp_path: Path) -> Settings:
    """A copy of their store."""
    store = shutil.copytree(made.store, tmp_path / "store")
    return made.model_copy(update={"store": str(store)})


def found(files: Files, days: int) -> dict[str, Prunable]:
    """What can be removed so many days after the first night."""
    now = datetime.combine(FIRST, time(12), UTC) + timedelta(days=days)
    return {one.kind: one for one in find_prunable(files, RETENTION, now)}


def folders(kind: Prunable) -> list[str]:
    """The first two steps of its files' paths."""
    return sorted({"/".join(info.path.split("/")[:2]) for info in kind.files})


def removed(files: Files, kinds: Sequence[Prunable]) -> None:
    """Remove them."""
    prune(files, kinds, lambda done, total: None)


def test_nothing_goes_in_the_first_two_weeks(settings: Settings) -> None:
    """A night looks for pages of the 14 nights before it."""
    assert not found(open_store(settings), 14)


def test_a_run_that_was_replaced_goes_first(settings: Settings) -> None:
    """All of it; the night keeps the run that replaced it, and its numbers."""
    files = open_store(settings)
    before = nights(files)
    kinds = found(files, 15)
    assert list(kinds) == ["superseded runs"]
    assert folders(kinds["superseded runs"]) == [
        f"{p}/dt={FIRST}" for p in ("rows", "runs", "scores")
    ]
    removed(files, list(kinds.values()))
    assert nights(files) == before
    assert not found(files, 15)


def test_a_run_that_never_ended_goes_too(settings: Settings) -> None:
    """Rows and scores without a manifest are read by nobody."""
    files = open_store(settings)
    for info in files.below(f"runs/dt={SECOND}"):
        files.remove(info.path)
    assert folders(found(files, 16)["unfinished runs"]) == [
        f"rows/dt={SECOND}",
        f"scores/dt={SECOND}",
    ]
    assert "unfinished runs" not in found(files, 14)


def test_rows_go_before_scores(settings: Settings) -> None:
    """The logged texts of both nights; scores, pages and the overview stay as they were."""
    files = open_store(settings)
    page = files.read(f"dashboard/{FIRST}/index.html")
    kinds = found(files, 92)
    removed(files, list(kinds.values()))
    assert not files.below("rows")
    assert [one.date for one in nights(files)] == [FIRST, SECOND]
    assert files.read(f"dashboard/{FIRST}/index.html") == page
    assert files.below(f"scores/dt={FIRST}")


def test_an_old_night_goes_whole(settings: Settings) -> None:
    """Also from the overview; the night after it stays."""
    files = open_store(settings)
    removed(files, list(found(files, 401).values()))
    assert [one.date for one in nights(files)] == [SECOND]
    assert not [info.path for info in files.below() if str(FIRST) in info.path]
    overview = files.read("dashboard/index.html").decode()
    assert (f"{FIRST}/index.html" in overview, f"{SECOND}/index.html" in overview) == (False, True)


def test_a_removal_that_stopped_goes_on(settings: Settings) -> None:
    """The manifest goes first, so no half of a run is read."""
    files = open_store(settings)
    kind = found(files, 401)["nights"]
    assert kind.files[0].path.startswith("runs/")
    files.remove(kind.files[0].path)
    removed(files, list(found(files, 401).values()))
    assert [one.date for one in nights(files)] == [SECOND]


def test_the_command_only_lists_at_first(run: Run, settings: Settings) -> None:
    """With --yes it removes; less than ragmetrics needs is refused."""
    count = len(open_store(settings).below())
    ended = run("prune", settings.store, "--keep", "60d", "--keep-rows", "14d")
    assert ended.code == 0
    assert "Nothing is removed yet: add --yes" in ended.out
    assert len(open_store(settings).below()) == count
    ended = run("prune", settings.store, "--keep", "60d", "--keep-rows", "14d", "--yes", "--json")
    assert json.loads(ended.out)["removed"] is True
    assert len(open_store(settings).below()) < count
    assert run("prune", settings.store, "--keep", "60d", "--keep-rows", "14d").out.endswith(
        ": nothing to remove\n"
    )
    assert run("prune", settings.store, "--keep", "5d").code == 2
    assert run("prune", settings.store, "--keep", "forever").code == 2
    with pytest.raises(InputError, match="--keep-rows 3d: should be at least 14d"):
        Retention(timedelta(days=400), timedelta(days=3))
