"""How prune removes files: logged first, looked at again, and restored from a versioned bucket."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ragmetrics.errors import StoreError
from ragmetrics.pipeline import prune
from ragmetrics.pipeline.retention import Retention, plan_removal
from ragmetrics.storage import Files
from tests.fakes.aged_store import AgedStore, aged_store, morning_after
from tests.fakes.clients import Bucket
from tests.fakes.nights import FIRST

RETENTION = Retention(timedelta(days=60), timedelta(days=14))
NOW = morning_after(FIRST + timedelta(days=30))


@pytest.fixture
def store(tmp_path: Path) -> AgedStore:
    """A run that never ended, and the run that replaced another."""
    made = aged_store(tmp_path)
    made.add_run(FIRST, "dead", finished=False)
    made.add_run(FIRST, "replaced")
    made.add_run(FIRST, "current", at=morning_after(FIRST) + timedelta(hours=1))
    return made


def logged(files: Files, path: str) -> list[dict[str, object]]:
    """The lines of a log."""
    return [json.loads(line) for line in files.read(path).splitlines()]


def test_the_log_names_all_that_was_removed(store: AgedStore) -> None:
    """Each file with its size and version as they were."""
    plan = plan_removal(store.settings, RETENTION, NOW)
    done = prune(store.files, plan)
    (path,) = done.logs
    expected = [
        {"path": file.path, "size": file.size, "version": file.version}
        for kind in plan.kinds
        for file in kind.files
    ]
    assert logged(store.files, path) == expected
    assert (done.files, done.left) == (len(expected), 0)
    assert len(expected) == 7


def test_without_a_log_nothing_is_removed(
    store: AgedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store refuses to write it."""
    plan, before = plan_removal(store.settings, RETENTION, NOW), store.files.below()

    def refuse(*_: object) -> None:
        raise StoreError("access denied")

    monkeypatch.setattr(Files, "write", refuse)
    with pytest.raises(StoreError, match="access denied"):
        prune(store.files, plan)
    assert store.files.below() == before


def test_a_file_that_changed_since_it_was_listed_stays(store: AgedStore) -> None:
    """Another process wrote it."""
    plan = plan_removal(store.settings, RETENTION, NOW)
    changed = plan.kinds[0].files[0].path
    store.files.write(changed, b"of today")
    done = prune(store.files, plan)
    assert store.files.read(changed) == b"of today"
    assert done.left == 1


def test_an_unfinished_run_that_goes_on_stays_whole(store: AgedStore) -> None:
    """A new part of its scores came between the listing and the removal."""
    plan = plan_removal(store.settings, RETENTION, NOW)
    store.add_run(FIRST, "dead", finished=False, at=NOW)
    before = store.paths(FIRST, "dead")
    prune(store.files, plan)
    assert store.paths(FIRST, "dead") == before


def test_what_was_removed_is_restored_from_a_versioned_bucket(s3: Bucket) -> None:
    """By the log alone, with the calls of the command in docs/reference/store.md."""
    s3.client.put_bucket_versioning(Bucket=s3.name, VersioningConfiguration={"Status": "Enabled"})
    files = Files(f"{s3.uri}/store")
    settings = aged_store(Path("unused"), store=files.root).settings
    dead = [f"rows/dt={FIRST}/run=dead/{name}" for name in ("staged.json", "shard-000.parquet")]
    for path in dead:
        files.write(path, path.encode())
    done = prune(files, plan_removal(settings, RETENTION, NOW + timedelta(days=3_650)))
    assert [files.info(path) for path in dead] == [None, None]
    prefix = urlsplit(files.root).path.strip("/")
    for line in logged(files, done.logs[0]):
        source = f"{s3.name}/{prefix}/{line['path']}?versionId={line['version_id']}"
        key = f"{prefix}/{line['path']}"
        s3.client.copy_object(Bucket=s3.name, Key=key, CopySource=source)
    assert [files.read(path).decode() for path in dead] == dead
