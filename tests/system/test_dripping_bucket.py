"""A bucket that sends a byte a second, under a whole night: the night ends after its deadline."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import s3fs
import yaml

from ragmetrics.config import load_settings
from ragmetrics.errors import StoreError
from ragmetrics.pipeline import CoverageShort, run_night
from ragmetrics.storage import Runs, minimum_rate, open_store
from tests.builders import night_values, save_settings
from tests.fakes.clients import Bucket
from tests.fakes.flaky_s3 import FlakyS3
from tests.fakes.logs import NIGHT, make_rows
from tests.fakes.processes import running

BEFORE = NIGHT - timedelta(days=1)
DEADLINE = 5.0
PATIENCE = 300.0
"""Seconds for which each failing read is repeated before the deadline."""


@pytest.fixture
def flaky(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlakyS3]:
    """A proxy before the bucket, on which s3fs goes; what drips for a second is cut."""
    monkeypatch.setattr(minimum_rate, "GRACE", 1.0)
    monkeypatch.setattr(minimum_rate, "ANSWER", 3.0)
    with running("tests.fakes.flaky_s3", "--upstream", s3.endpoint) as port:
        server = FlakyS3(port)
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        s3fs.S3FileSystem.clear_instance_cache()
        yield server
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def settings(tmp_path: Path, s3: Bucket, flaky: FlakyS3) -> str:
    """A settings file with logs and store in the bucket; the night before is published."""
    for day in (BEFORE, NIGHT):
        body = "".join(json.dumps(row) + "\n" for row in make_rows(20, night=day)).encode()
        s3.client.put_object(Bucket=s3.name, Key=f"logs/dt={day}/0.jsonl", Body=body)
    values: dict[str, Any] = night_values(
        s3.uri,
        logs="logs/dt={date}/*.jsonl",
        shards=1,
        storage_options={"patience_seconds": PATIENCE},
        rules=[{"metric": "context_recall", "min": 0.5, "min_rows": 5}],
    )
    path = save_settings(tmp_path, values)
    run_night(load_settings(path), BEFORE)
    path.write_text(yaml.safe_dump(values | {"deadline": f"{DEADLINE:g}s"}))
    return str(path)


def alone(settings: str) -> Any:
    """The night without Prefect."""
    return run_night(load_settings(settings), NIGHT)


def through_prefect(settings: str) -> Any:
    """The flow, run in this process."""
    from flows.nightly import nightly

    return nightly(settings, NIGHT)


@pytest.mark.parametrize("way", [alone, through_prefect])
def test_a_night_whose_history_drips_is_published(
    request: pytest.FixtureRequest, settings: str, flaky: FlakyS3, way: Callable[[str], Any]
) -> None:
    """The manifests are read instead, which is told; nothing is waited for after the deadline,
    though each read might be repeated for five minutes. Rows may have been scored before it."""
    if way is through_prefect:
        request.getfixturevalue("prefect_server")
    flaky.faults(drips="store/history")
    begun = time.monotonic()
    with suppress(CoverageShort):
        way(settings)
    manifest = Runs(open_store(load_settings(settings))).current(NIGHT)
    assert manifest
    assert any("history: the manifests are read instead" in one for one in manifest.damaged)
    assert flaky.stats()["dripped"] > 1
    assert time.monotonic() - begun < PATIENCE


def test_a_night_whose_bucket_drips_ends_with_an_error(settings: str, flaky: FlakyS3) -> None:
    """Logs, store and listings: it names what it could not read, and does not hang."""
    flaky.faults(drips="/")
    begun = time.monotonic()
    with pytest.raises(StoreError, match="no whole answer in 3 s") as raised:
        alone(settings)
    assert raised.value.transient
    assert time.monotonic() - begun < PATIENCE
