"""A bucket that drips: a real S3 behind a proxy that sends a byte a second."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import s3fs

from ragmetrics.delivery import load_alerts
from ragmetrics.errors import StoreError
from ragmetrics.storage import Files, RunIndex, Runs, collecting_damage, minimum_rate
from tests.fakes.clients import Bucket
from tests.fakes.flaky_s3 import FlakyS3
from tests.fakes.nights import night
from tests.fakes.processes import running


@pytest.fixture
def flaky(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlakyS3]:
    """A proxy before the bucket, on which s3fs goes; what drips for a second is cut."""
    monkeypatch.setattr(minimum_rate, "GRACE", 1.0)
    with running("tests.fakes.flaky_s3", "--upstream", s3.endpoint) as port:
        server = FlakyS3(port)
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        s3fs.S3FileSystem.clear_instance_cache()
        yield server
    s3fs.S3FileSystem.clear_instance_cache()


def store(s3: Bucket) -> Files:
    """A store that gives up soon."""
    return Files(f"{s3.uri}/store", {"patience_seconds": 4})


@pytest.mark.parametrize("whole", [True, False])
def test_a_reply_that_drips_is_an_error_and_no_wait(
    s3: Bucket, flaky: FlakyS3, whole: bool
) -> None:
    """Read at once or in pieces; a kilobyte would take a quarter of an hour."""
    files, begun = store(s3), time.monotonic()
    files.write("rows/a.bin", b"a" * 1_000)
    flaky.faults(drips="rows/")
    with pytest.raises(StoreError, match=r"rows/a\.bin: .*only \d+ bytes in") as raised:
        if whole:
            files.read("rows/a.bin")
        else:
            with files.open("rows/a.bin") as file:
                file.read()
    assert raised.value.transient
    assert flaky.stats()["dripped"] > 1  # it was tried again
    assert time.monotonic() - begun < 300


def test_a_reply_that_drips_once_is_read_again(s3: Bucket, flaky: FlakyS3) -> None:
    """The second reply comes at its usual pace."""
    files = store(s3)
    files.write("rows/a.bin", b"a" * 1_000)
    flaky.faults(drips="rows/", drip_times=1)
    assert files.read("rows/a.bin") == b"a" * 1_000


def test_history_that_drips_is_read_from_the_manifests(s3: Bucket, flaky: FlakyS3) -> None:
    """As where it may not be read, and it is said."""
    files = store(s3)
    for number in range(3):
        Runs(files).save(night(number))
    index = RunIndex(files)
    index.keep(index.listed())
    flaky.faults(drips="store/history/")
    with collecting_damage() as damaged:
        assert [one.date for one in Runs(files).outlines()] == [
            night(number).date for number in range(3)
        ]
    assert "history: the manifests are read instead" in damaged[0]


def test_alert_states_that_drip_are_computed_again(s3: Bucket, flaky: FlakyS3) -> None:
    """From the manifests of the nights."""
    files = store(s3)
    Runs(files).save(night(0, recall=0.5))
    files.write("alerts/state.json", b" " * 1_000)
    flaky.faults(drips="alerts/state.json")
    (state,) = [state for state in load_alerts(files).states.values() if state.state == "firing"]
    assert state.since == night(0).date
