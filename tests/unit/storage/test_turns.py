"""storage/turns.py: one process at a time does work of a kind in a folder, and the others wait."""

from __future__ import annotations

import errno
import fcntl
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import pytest
import s3fs

from ragmetrics.storage import Files, taking_turns, turns
from tests.fakes.clients import Bucket
from tests.fakes.flaky_s3 import FlakyS3
from tests.fakes.processes import ROOT, running

_OWNER = """
import sys
from ragmetrics.storage import Files, taking_turns

with taking_turns(Files(sys.argv[1]), "backfill", "the backfill of May"):
    print("begun", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def flaky(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlakyS3]:
    """A proxy before the bucket, on which s3fs goes."""
    with running("tests.fakes.flaky_s3", "--upstream", s3.endpoint) as port:
        server = FlakyS3(port)
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        s3fs.S3FileSystem.clear_instance_cache()
        yield server
    s3fs.S3FileSystem.clear_instance_cache()


@contextmanager
def another_process(store: str) -> Iterator[subprocess.Popen[str]]:
    """A process whose turn it is, until a line or the end of its input."""
    command = [sys.executable, "-c", _OWNER, store]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        yield process


def watched(store: Files) -> tuple[threading.Thread, list[str]]:
    """A thread that waits for its turn, once it has said so; and what it did."""
    done, told = list[str](), SimpleQueue[str]()

    def second() -> None:
        with taking_turns(store, "backfill", "the backfill of June"):
            done.append("second")

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.put(record.getMessage())

    logger = logging.getLogger("ragmetrics.storage.turns")
    logger.addHandler(heard := Heard())
    (waiting := threading.Thread(target=second)).start()
    text = told.get(timeout=240)
    logger.removeHandler(heard)
    assert text.startswith("the backfill of June waits for the backfill of May (process ")
    return waiting, done


def test_the_second_waits_until_the_first_has_ended_and_names_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so once, and then runs."""
    store = Files(str(tmp_path / "store"))
    with taking_turns(store, "backfill", "the backfill of May"):
        waiting, done = watched(store)
        assert done == []
    waiting.join(240)
    assert done == ["second"]
    assert len(caplog.messages) == 1


@pytest.mark.process
def test_in_a_bucket_a_process_waits_for_the_turn_of_another(s3: Bucket) -> None:
    """It begins when that has ended; one turn is left, which has ended too."""
    store = Files(f"{s3.uri}/store")
    with another_process(store.root) as process:
        waiting, done = watched(store)
        assert done == []
        process.communicate("end\n", timeout=240)
    waiting.join(240)
    assert done == ["second"]
    assert [(info.path, info.size) for info in store.below()] == [("turns/backfill/000002", 0)]


@pytest.mark.process
def test_a_killed_owner_is_given_up(
    s3: Bucket, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After looks at a turn that nobody renews."""
    monkeypatch.setattr(turns, "_PAUSE", 0.01)
    store = Files(f"{s3.uri}/store")
    with another_process(store.root) as process:
        process.kill()
    waiting, done = watched(store)
    waiting.join(240)
    assert done == ["second"]
    assert "does not wait longer: nobody has renewed that turn" in caplog.text


def test_an_owner_at_work_is_not_given_up(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """It renews its turn, which the waiting one sees however long the work takes."""
    monkeypatch.setattr(turns, "_PAUSE", 0.01)
    monkeypatch.setattr(turns, "_RENEWED_EVERY", 0.01)
    store = Files(f"{s3.uri}/store")
    with taking_turns(store, "backfill", "the backfill of May"):
        waiting, done = watched(store)
        seen = set[bytes]()
        while len(seen) < 3:
            seen.add(store.read("turns/backfill/000001"))
        assert done == []
    waiting.join(240)
    assert done == ["second"]


def test_one_that_was_overtaken_before_it_took_its_turn_waits_anew(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number was free again, since two others came and went between two of its requests."""
    store = Files(f"{s3.uri}/store")
    seen, numbers = list[list[int]](), turns._numbers

    def overtaken(files: Files) -> list[int]:
        seen.append(numbers(files))
        if len(seen) == 1:
            files.write("000002", b"")
        return seen[-1]

    monkeypatch.setattr(turns, "_numbers", overtaken)
    with taking_turns(store, "backfill", "one"):
        assert [info.path for info in store.below()] == ["turns/backfill/000003"]
    assert seen == [[], [1, 2], [2], [2, 3]]


def test_a_server_that_overwrites_holds_nobody_up_and_is_named(
    s3: Bucket, flaky: FlakyS3, caplog: pytest.LogCaptureFixture
) -> None:
    """Two run at once, as without turns; each says so once, and nothing is left."""
    flaky.faults(unconditional=True)
    store = Files(f"{s3.uri}/store")
    with taking_turns(store, "backfill", "one"), taking_turns(store, "backfill", "two"):
        pass
    why = "does not wait for others: the server overwrites what it is told not to"
    place = f"{store.uri()} has no turns"
    assert caplog.messages == [f"{place}, so {what} {why}" for what in ("one", "two")]
    assert store.below() == []


def test_a_bucket_that_refuses_turns_holds_nobody_up(
    s3_strict: Bucket, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here by a wrong secret: what the work writes says so as an error."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    s3fs.S3FileSystem.clear_instance_cache()
    with taking_turns(Files(f"{s3_strict.uri}/store"), "backfill", "one"):
        pass
    assert "has no turns, so one does not wait for others: listing" in caplog.text


def test_a_turn_whose_confirmation_was_lost_is_ours(s3: Bucket, flaky: FlakyS3) -> None:
    """The repeated request is refused because of the first one, which was carried out."""
    flaky.faults(share=0.3, late=1.0, seed=3)
    store = Files(f"{s3.uri}/store")
    with taking_turns(store, "backfill", "one"):
        assert [info.path for info in store.below()] == ["turns/backfill/000001"]


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
