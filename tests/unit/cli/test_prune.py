"""`ragmetrics prune`: what a store loses with time, and what it keeps."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.pipeline import PrunePlan, prune, run_night, store_references
from ragmetrics.pipeline.retention import Prunable, Retention, plan_removal
from ragmetrics.storage import Runs, open_store
from tests.builders import night_settings
from tests.fakes.command import Run
from tests.fakes.logs import make_rows, write_jsonl

FIRST = date(2026, 3, 1)
SECOND = FIRST + timedelta(days=1)
LONG_AGO = datetime(2026, 3, 3, tzinfo=UTC).timestamp()
RETENTION = Retention(timedelta(days=400), timedelta(days=90))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Two nights; the first was run twice, as more of its logs came late."""
    folder = tmp_path_factory.mktemp("made")
    settings = night_settings(folder, logs="logs/{date}/")
    for day in (FIRST, SECOND):
        write_jsonl(folder / "logs" / str(day) / "a.jsonl", make_rows(12, night=day))
        run_night(settings, day)
    write_jsonl(folder / "logs" / str(FIRST) / "b.jsonl", make_rows(3, night=FIRST))
    run_night(settings, FIRST)
    for path in Path(settings.store).rglob("*.*"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    return settings


@pytest.fixture
def settings(made: Settings, tmp_path: Path) -> Settings:
    """A copy of their store."""
    store = shutil.copytree(made.store, tmp_path / "store")  # with its times
    return made.model_copy(update={"store": str(store)})


@pytest.fixture(autouse=True)
def few_nights_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the newest 90, and of the rows of 15: only the newest night is compared."""
    for name in ("NEEDED_NIGHTS", "COMPARED_NIGHTS", "_ROW_NIGHTS"):
        monkeypatch.setattr(store_references, name, 1)


def plan_after(settings: Settings, days: int) -> PrunePlan:
    """What can be removed so many days after the first night."""
    now = datetime.combine(FIRST, time(12), UTC) + timedelta(days=days)
    return plan_removal(settings, RETENTION, now)


def found(settings: Settings, days: int) -> dict[str, Prunable]:
    """The same by kind."""
    return {kind.kind: kind for kind in plan_after(settings, days).kinds}


def folders(kind: Prunable) -> list[str]:
    """The first two steps of its files' paths."""
    return sorted({"/".join(info.path.split("/")[:2]) for info in kind.files})


def test_nothing_goes_in_the_first_two_weeks(settings: Settings) -> None:
    """A night looks for pages of the 14 nights before it."""
    assert not found(settings, 14)


def test_a_run_that_was_replaced_goes_first(settings: Settings) -> None:
    """All of it; the night keeps the run that replaced it, and its numbers."""
    files = open_store(settings)
    before = Runs(files).nights()
    plan = plan_after(settings, 15)
    kinds = {kind.kind: kind for kind in plan.kinds}
    assert list(kinds) == ["superseded runs"]
    assert folders(kinds["superseded runs"]) == [
        f"{p}/dt={FIRST}" for p in ("rows", "runs", "scores")
    ]
    prune(files, plan)
    assert Runs(files).nights() == before
    assert not found(settings, 15)


def test_a_run_that_never_ended_goes_too(settings: Settings) -> None:
    """Rows and scores without a manifest are read by nobody."""
    files = open_store(settings)
    for info in files.below(f"runs/dt={SECOND}"):
        files.remove(info.path)
    assert folders(found(settings, 16)["unfinished runs"]) == [
        f"rows/dt={SECOND}",
        f"scores/dt={SECOND}",
    ]
    assert "unfinished runs" not in found(settings, 14)


def test_rows_go_before_scores(settings: Settings) -> None:
    """The logged texts of the older night; scores, pages and the overview stay as they were."""
    files = open_store(settings)
    page = files.read(f"dashboard/{FIRST}/index.html")
    prune(files, plan_after(settings, 92))
    assert {info.path.split("/")[1] for info in files.below("rows")} == {f"dt={SECOND}"}
    assert [night.date for night in Runs(files).nights()] == [FIRST, SECOND]
    assert files.read(f"dashboard/{FIRST}/index.html") == page
    assert files.below(f"scores/dt={FIRST}")


def test_an_old_night_goes_whole(settings: Settings) -> None:
    """Also from the overview; the night after it stays."""
    files = open_store(settings)
    prune(files, plan_after(settings, 401))
    assert [night.date for night in Runs(files).nights()] == [SECOND]
    below = [info.path for info in files.below() if not info.path.startswith("prune/")]
    assert not [path for path in below if str(FIRST) in path]
    overview = files.read("dashboard/index.html").decode()
    assert (f"{FIRST}/index.html" in overview, f"{SECOND}/index.html" in overview) == (False, True)


def test_a_removal_that_stopped_goes_on(settings: Settings) -> None:
    """The manifest goes first, so no half of a run is read."""
    files = open_store(settings)
    kind = found(settings, 401)["nights"]
    assert kind.files[0].path.startswith("runs/")
    files.remove(kind.files[0].path)
    prune(files, plan_after(settings, 401))
    assert [night.date for night in Runs(files).nights()] == [SECOND]


def test_the_command_only_lists_at_first(run: Run, settings: Settings) -> None:
    """With --yes it removes; less than ragmetrics needs is refused."""
    count = len(open_store(settings).below())
    ended = run("prune", settings.store, "--keep", "60d", "--keep-rows", "14d")
    assert ended.code == 0
    assert "Nothing is removed yet: add --yes" in ended.out
    assert len(open_store(settings).below()) == count
    ended = run("prune", settings.store, "--keep", "60d", "--keep-rows", "14d", "--yes", "--json")
    report = json.loads(ended.out)
    assert report["removed"] is True
    assert open_store(settings).read(report["logs"][0])
    assert len(open_store(settings).below()) < count
    assert run("prune", settings.store, "--keep", "60d", "--keep-rows", "14d").out.endswith(
        ": nothing to remove\n"
    )
    assert run("prune", settings.store, "--keep", "5d").code == 2
    assert run("prune", settings.store, "--keep", "forever").code == 2
    with pytest.raises(InputError, match="--keep-rows 3d: should be at least 14d"):
        Retention(timedelta(days=400), timedelta(days=3))
