"""storage/turns.py: one process at a time does work of a kind in a folder, and the others wait."""

from __future__ import annotations

import errno
import fcntl
import logging
import threading
from pathlib import Path

import pytest

from ragmetrics.storage import Files, taking_turns


def test_the_second_waits_until_the_first_has_ended_and_names_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so once, and then runs."""
    files, order, told = Files(str(tmp_path / "store")), list[str](), threading.Event()

    def second() -> None:
        with taking_turns(files, "backfill", "the backfill of June"):
            order.append("second")

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.set()

    logging.getLogger("ragmetrics.storage.turns").addHandler(heard := Heard())
    waiting = threading.Thread(target=second)
    with taking_turns(files, "backfill", "the backfill of May"):
        waiting.start()
        assert told.wait(60)
        order.append("first")
    waiting.join(60)
    logging.getLogger("ragmetrics.storage.turns").removeHandler(heard)
    assert order == ["first", "second"]
    (text,) = caplog.messages
    assert text.startswith("the backfill of June waits for the backfill of May (process ")


def test_other_work_and_other_stores_wait_for_nothing(tmp_path: Path) -> None:
    """Nor does a store that cannot be locked; the lock is no file of the store."""
    files, other = Files(str(tmp_path / "a")), Files(str(tmp_path / "b"))
    (tmp_path / "c").write_text("a file")
    with (
        taking_turns(files, "backfill", "one"),
        taking_turns(files, "other", "two"),
        taking_turns(other, "backfill", "three"),
        taking_turns(Files(str(tmp_path / "c")), "backfill", "four"),
        taking_turns(Files("memory://turns"), "backfill", "five"),
        taking_turns(Files("memory://turns"), "backfill", "six"),
    ):
        assert files.below() == []


def test_a_folder_without_locks_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As on some network file systems: the work runs at once, and says that it does."""

    def refused(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    with taking_turns(Files(str(tmp_path / "a")), "backfill", "the backfill of May"):
        pass
    assert "has no locks, so the backfill of May does not wait" in caplog.text


def test_work_that_wrote_nothing_leaves_no_folder(tmp_path: Path) -> None:
    """Two that run one in the other, as far as the first knows; the error of the work is told."""
    files = Files(str(tmp_path / "store"))
    with pytest.raises(ValueError, match="no log"), taking_turns(files, "backfill", "one"):
        with taking_turns(files, "other", "two"):
            pass
        (tmp_path / "store" / ".backfill.lock").unlink()
        (tmp_path / "store" / ".other.lock").unlink()
        (tmp_path / "store").rmdir()
        raise ValueError("no log")
    with taking_turns(files, "backfill", "one"):
        pass
    assert not (tmp_path / "store").exists()
