"""The newest records of a folder: in their order, and for no more requests than they are shown."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given, strategies as st

from ragmetrics.comparison import load_gates, save_failed_gate, save_gate
from ragmetrics.comparison.gate.store import newest_first
from ragmetrics.dashboard import refresh_builds
from ragmetrics.dashboard.pages import builds
from ragmetrics.storage import FileInfo, Files
from tests.fakes.clients import Bucket
from tests.fakes.gated import FINISHED, gate, promoted, undecided

DAY = 86_400
START = FINISHED.timestamp()


def listed(*written: float | None) -> list[FileInfo]:
    """A listing of files that were written so many seconds after the first moment."""
    return [
        FileInfo(f"{number:03d}", 1, "v", None if after is None else START + after)
        for number, after in enumerate(written)
    ]


def moment(after: float) -> datetime:
    """So many seconds after the first moment."""
    return datetime.fromtimestamp(START + after, UTC)


@given(
    st.lists(
        st.tuples(st.integers(0, 40 * DAY), st.integers(0, 30 * DAY), st.integers(-900, 900)),
        max_size=30,
    )
)
def test_they_come_newest_first(records: list[tuple[int, int, int]]) -> None:
    """However late a file was written anew, and wherever its clock stood."""
    infos = listed(*(at + late + skew for at, late, skew in records))
    found = newest_first(infos, lambda path: records[int(path)][0], moment)
    assert list(found) == sorted((at for at, _, _ in records), reverse=True)


def test_only_what_may_be_among_them_is_read() -> None:
    """Ten of a thousand days: the listing says that the others are older."""
    read: list[str] = []

    def note(path: str) -> float:
        read.append(path)
        return float(path) * DAY

    infos = listed(*(number * DAY for number in range(1_000)))
    assert len(list(islice(newest_first(infos, note, moment), 10))) == 10
    assert len(read) == 10


def test_a_store_that_does_not_say_when_files_were_written_has_all_read() -> None:
    """As has one that was copied, where all files are new: slower, and no less right."""
    for infos in (listed(*[None] * 5), listed(*[9 * DAY] * 5)):
        found = newest_first(infos, lambda path: int(path) * DAY, moment)
        assert list(found) == [4 * DAY, 3 * DAY, 2 * DAY, DAY, 0]


def test_what_cannot_be_read_is_left_out() -> None:
    """A file may be gone since the listing, or be none of ours."""
    read = {"000": 0.0, "001": None, "002": 2.0 * DAY}.get
    assert list(newest_first(listed(0, DAY, 2 * DAY), read, moment)) == [2 * DAY, 0]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """An empty bucket of a server in this process, where a test may say when objects were
    written.
    """
    from moto.server import ThreadedMotoServer

    from tests.fakes import s3 as fake_s3

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    endpoint = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
    for name, value in fake_s3.environment(endpoint).items():
        monkeypatch.setenv(name, value)
    fake_s3.empty(endpoint)
    yield fake_s3.make_bucket(endpoint)
    fake_s3.empty(endpoint)
    server.stop()


def write_days(bucket: Bucket, days: range, good: int | None = None) -> None:
    """Of each day a build that was held, or on the `good` one promoted, and an event without a
    verdict, all of them written on that day.
    """
    store = Files(bucket.uri, {"endpoint_url": bucket.endpoint})
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    objects = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[bucket.name].keys
    for day in days:
        when = FINISHED + timedelta(days=day)
        lost = undecided(event_id=f"e-{day}", at=when)
        save_gate(store, (promoted if day == good else gate)(f"idx-{day}", day))
        save_failed_gate(store, lost)
        for path in (f"gates/idx-{day}.json", lost.path):
            objects[path].last_modified = when.replace(tzinfo=None)


@contextmanager
def reading(caplog: pytest.LogCaptureFixture) -> Iterator[set[str]]:
    """The names of the verdicts, and of the events without one, that the server is asked for."""
    caplog.clear()
    asked: set[str] = set()
    with caplog.at_level(logging.INFO, logger="werkzeug"):
        yield asked
    asked |= set(re.findall(r"GET /[^/ ]+/gates/(\S+)\.json ", caplog.text))


@pytest.mark.process
def test_a_publish_reads_what_it_shows(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of 80 builds as many verdicts as of 20: those of the page, and one that tells of more."""
    monkeypatch.setattr(builds, "_MOST_LINES", 10)
    monkeypatch.setattr(builds, "_MOST_UNDECIDED", 5)
    store = Files(bucket.uri)
    for days in (range(60, 80), range(60)):
        write_days(bucket, days)
        with reading(caplog) as asked:
            refresh_builds(store)
        assert {one for one in asked if one.startswith("idx")} == {
            f"idx-{day}" for day in range(69, 80)
        }
        assert len([one for one in asked if "undecided" in one]) == 5
    page = store.read("dashboard/builds.html").decode()
    assert ("idx-79" in page, "idx-70" in page, "idx-69" in page) == (True, True, False)


@pytest.mark.process
def test_the_build_that_was_promoted_last_is_found_by_few_requests(
    bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    """One for each build since: as a gate that is told no serving build looks for it."""
    write_days(bucket, range(40), good=36)
    with reading(caplog) as asked:
        gates = load_gates(Files(bucket.uri))
        assert next(one.build for one in gates if one.verdict == "promote") == "idx-36"
    assert asked == {"idx-39", "idx-38", "idx-37", "idx-36"}
