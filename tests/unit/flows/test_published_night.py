"""A night that is published already and is run by hand again runs without Prefect."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from flows import published_night
from ragmetrics.config import load_settings
from ragmetrics.pipeline import Night, run_night
from ragmetrics.storage import Runs, open_store
from tests.builders import night_values
from tests.fakes.logs import NIGHT, make_rows


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """A settings file with a log of one night."""
    write_log(tmp_path / f"{NIGHT}.jsonl", 30)
    file = tmp_path / "ragmetrics.yaml"
    values = night_values(tmp_path, logs="{date}.jsonl", metrics=["context_relevance"])
    file.write_text(yaml.safe_dump(values))
    return file


def write_log(path: Path, rows: int) -> None:
    """Write a log of some rows."""
    path.write_text("".join(json.dumps(row) + "\n" for row in make_rows(rows)))


def repeat(monkeypatch: pytest.MonkeyPatch, settings: Path) -> None:
    """As `python -m flows.nightly` begins."""
    arguments = ["flows.nightly", "--settings", str(settings), "--date", str(NIGHT)]
    monkeypatch.setattr(sys, "argv", arguments)
    published_night.repeat()


def test_a_new_night_is_left_to_the_flow(monkeypatch: pytest.MonkeyPatch, settings: Path) -> None:
    """It needs scores, so nothing happens and nothing is written."""
    repeat(monkeypatch, settings)
    assert not (settings.parent / "store").exists()


def test_wrong_settings_are_left_to_the_flow(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The flow says what is wrong; the process goes on, and nothing is written."""
    repeat(monkeypatch, tmp_path / "missing.yaml")
    assert list(tmp_path.iterdir()) == []


def test_a_published_night_ends_the_process_with_the_same_numbers_and_its_pages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], settings: Path
) -> None:
    """The exit code is that of the night. A page that is missing is written."""
    chosen = load_settings(str(settings))
    first = run_night(chosen, NIGHT).manifest
    page = settings.parent / "store" / "dashboard" / "index.html"
    page.unlink()
    with pytest.raises(SystemExit) as ended:
        repeat(monkeypatch, settings)
    assert ended.value.code == 0
    (again,) = Runs(open_store(chosen)).nights()
    assert (again.run, again.metrics) == (first.run, first.metrics)
    assert page.exists()
    assert "is published" in capsys.readouterr().err


def test_a_night_with_a_late_row_is_not_published(settings: Path) -> None:
    """Its run has another ID, so the flow scores it."""
    chosen = load_settings(str(settings))
    run_night(chosen, NIGHT)
    assert Night(chosen).is_published(NIGHT)
    write_log(settings.parent / f"{NIGHT}.jsonl", 31)
    assert not Night(chosen).is_published(NIGHT)
