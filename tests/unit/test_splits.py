"""Texts are split once: in memory, in a file that processes share, and beside an event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from ragmetrics.metrics import select
from ragmetrics.model import LogRow
from ragmetrics.scoring.panel import MetricRun, is_heavy
from ragmetrics.text import sentence_splitter as module, sentences, sharing_splits
from ragmetrics.text.split_cache import Recent, SharedSplitCache, Split, splits_file
from tests.fakes.processes import ROOT

PROSE = "The plug gets hot. Pull it out and wait for an hour. Then call Dr. No."
SPLIT = ("The plug gets hot.", "Pull it out and wait for an hour.", "Then call Dr. No.")
LISTED = " ".join(f"{number}. item" for number in range(100))


@pytest.fixture(autouse=True)
def nothing_split_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test starts like a new process."""
    monkeypatch.setattr(module, "_recent", Recent(1 << 20))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that this process splits by itself."""
    texts: list[str] = []
    split = module._split
    monkeypatch.setattr(
        module, "_split", lambda text, code: texts.append(text) or split(text, code)
    )
    return texts


@pytest.fixture
def file() -> Iterator[Path]:
    """Where a run keeps its splits."""
    with splits_file() as path:
        yield path


def kept(path: Path) -> None:
    """Leave the split of the prose in a file."""
    shared = SharedSplitCache(path)
    shared.put(("en", PROSE), Split(SPLIT, None))
    shared.close()


def _in_another_process(path: Path, text: str) -> None:
    code = (
        "import sys, pathlib\n"
        "from ragmetrics.text.sentence_splitter import sentences, sharing_splits\n"
        "with sharing_splits(pathlib.Path(sys.argv[1])): sentences(sys.argv[2], 'en')"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code, str(path), text], check=True, env=environment)


@pytest.mark.process
def test_what_another_process_split_is_not_split_again(file: Path, asked: list[str]) -> None:
    """A text that one process of a run has split, the others look up."""
    _in_another_process(file, PROSE)
    with sharing_splits(file):
        assert sentences(PROSE) == SPLIT
        assert asked == []
        assert sentences(PROSE, "de") != ()  # other rules, another text
        assert asked == [PROSE]


def test_many_splits_are_found_before_the_close(file: Path) -> None:
    """They are written some dozens at a time, while their process is still at work."""
    writer, reader = SharedSplitCache(file), SharedSplitCache(file)
    texts = [f"{PROSE} Number {number}." for number in range(100)]
    for text in texts:
        writer.put(("en", text), Split((text,), None))
    found = [text for text in texts if reader.get(("en", text))]
    assert 50 < len(found) < 100
    assert all(writer.get(("en", text)) for text in texts)
    for shared in (writer, reader):
        shared.close()


def test_what_left_the_memory_is_not_split_again(
    monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    """A run whose texts do not fit into memory finds them in its file."""
    with sharing_splits():
        assert sentences(PROSE) == SPLIT
        monkeypatch.setattr(module, "_recent", Recent(1 << 20))
        assert sentences(PROSE) == SPLIT
    assert asked == [PROSE]


def test_tiny_texts_are_not_shared(file: Path) -> None:
    """A text that is split as fast as it is looked up stays out of the file."""
    shared = SharedSplitCache(file)
    shared.put(("en", "Yes. No."), Split(("Yes.", "No."), None))
    assert shared.get(("en", "Yes. No.")) is None


def test_the_file_goes_with_the_run(asked: list[str]) -> None:
    """Work inside shares the file of the outermost run, which is gone afterwards."""
    with sharing_splits() as outer:
        with sharing_splits() as inner:
            sentences(PROSE)
        assert inner == outer and outer.exists()
    assert not outer.parent.exists()


@hypothesis_settings(deadline=None, max_examples=30)
@given(st.text(), st.lists(st.text(min_size=1)), st.sampled_from([None, "lost text"]))
def test_any_split_comes_back_as_it_was(text: str, found: list[str], reason: str | None) -> None:
    """Sentences come back whether they stand in the text or were changed, surrogates too."""
    text = text + "\ud800".join(found) + " " * 40
    with splits_file() as path:
        shared = SharedSplitCache(path)
        shared.put(("en", text), Split(tuple(found), reason))
        assert shared.get(("en", text)) == Split(tuple(found), reason)
        shared.close()
        another = SharedSplitCache(path)
        assert another.get(("en", text)) == Split(tuple(found), reason)
        another.close()


def test_a_file_that_cannot_be_used_fails_no_split(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the file cannot be opened the texts are split here, and the log says so once."""
    with caplog.at_level(logging.WARNING), sharing_splits(tmp_path):  # a folder
        assert sentences(PROSE) == SPLIT
        assert sentences(PROSE + " Wait.") == (*SPLIT, "Wait.")
    assert [record.getMessage() for record in caplog.records] == [
        f"sentences are not shared between processes: {tmp_path}: unable to open database file"
    ]


def test_a_locked_file_fails_no_split(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A process that holds the file does not hold up the others, and is no reason to warn."""
    kept(file)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with caplog.at_level(logging.WARNING), sharing_splits(file):
        assert sentences(PROSE + " Wait.") == (*SPLIT, "Wait.")
    other.close()
    assert caplog.text == ""


def test_damage_fails_no_split(file: Path, asked: list[str]) -> None:
    """What is no split is split again."""
    kept(file)
    damage = sqlite3.connect(file, isolation_level=None)
    damage.execute("UPDATE splits SET split = 'x'")
    damage.close()
    with sharing_splits(file):
        assert sentences(PROSE) == SPLIT
    assert asked == [PROSE]


def row(*contexts: str) -> LogRow:
    """A row that retrieved these."""
    return LogRow("1", "Why?", contexts)


def test_rows_of_long_texts_and_of_long_lists_are_heavy() -> None:
    """Prose weighs its characters; a list, over which pysbd takes many steps, weighs more."""
    assert not is_heavy(row(PROSE * 10))
    assert is_heavy(row(PROSE * 200))
    assert len(LISTED) < 1_000 and is_heavy(row(LISTED, LISTED))


def test_a_heavy_row_is_split_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others on the loop go on while a thread splits; a light row needs none."""
    threads: list[bool] = []

    def watched(text: str | None, language: str | None = None) -> tuple[str, ...]:
        threads.append(threading.current_thread() is threading.main_thread())
        return sentences(text, language)

    metric = select(["context_relevancy"])[0]
    monkeypatch.setattr(
        sys.modules["ragmetrics.metrics.bundled.context_relevancy"], "sentences", watched
    )
    for heavy in (False, True):
        asyncio.run(MetricRun(metric, row(PROSE), heavy=heavy).advance(None))
    assert threads == [True, False]


def test_a_thread_that_is_late_opens_nothing(file: Path) -> None:
    """After the run's end what is still at work splits for itself and leaves no file behind."""
    shared = SharedSplitCache(file)
    shared.close()
    shared.put(("en", PROSE), Split(SPLIT, None))
    assert shared.get(("en", PROSE)) is None
    assert not file.exists()
