"""A year of nights, reduced to fifty: what publishing one more reads and writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiobotocore.client import AioBaseClient

from benchmarks.year import publish_tonight
from benchmarks.year_store import TONIGHT, Night, fill, make_night, unpublish
from ragmetrics.pipeline import run_night
from ragmetrics.storage import FileInfo, Files, Runs
from tests.fakes.clients import Bucket

MOST_FILES, MOST_BYTES = 14, 5_000_000
LARGEST_PAGE = 300_000
NIGHTS = 50
MOST_REQUESTS = 600


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """A night of the demo, scored."""
    return make_night(tmp_path_factory.mktemp("demo"))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The paths of all small files that are read, as they are."""
    paths: list[str] = []
    really = Files.read

    def told(self: Files, path: str) -> bytes:
        paths.append(path)
        return really(self, path)

    monkeypatch.setattr(Files, "read", told)
    yield paths


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where stores can be."""
    if request.param == "folder":
        return str(tmp_path)
    bucket: Bucket = request.getfixturevalue("s3")
    return bucket.uri


def test_one_more_night_writes_few_files(night: Night, place: str) -> None:
    """At most 14, of less than 5 MB together: its own pages, the overview, the questions, its
    manifest and its month. What all nights share stands there from the first night on.
    """
    files = Files(f"{place}/store")
    fill(night, files, NIGHTS)
    publish_tonight(night, files)
    unpublish(night, files)
    found = publish_tonight(night, files)
    names = {uri.partition("/store/")[2] for uri in found.written}
    assert len(names) <= MOST_FILES
    assert found.size < MOST_BYTES
    own = {
        f"runs/dt={TONIGHT}/run={night.manifest.run}.json",
        f"history/{TONIGHT:%Y-%m}.json",
        "dashboard/index.html",
        f"dashboard/{TONIGHT}/index.html",
    }
    assert own <= names
    shared = ("dashboard/assets/", "dashboard/builds", "dashboard/calibration")
    assert not any(name.startswith(shared) for name in names)


def test_what_is_read_does_not_grow_with_the_nights(
    night: Night, tmp_path: Path, read: list[str]
) -> None:
    """But for a file a month: of the nights before, only the manifest of the newest is read, whose
    segments the page compares with."""
    found: dict[int, list[str]] = {}
    for nights in (10, NIGHTS):
        files = Files(str(tmp_path / str(nights)))
        fill(night, files, nights)
        publish_tonight(night, files)
        unpublish(night, files)
        read.clear()
        publish_tonight(night, files)
        found[nights] = sorted(path for path in read if not path.startswith("history/"))
        months = {path for path in read if path.startswith("history/")}
        assert len(months) == {10: 1, NIGHTS: 2}[nights]
        times = sum(path.startswith("history/") for path in read)
        assert times <= 2 * len(months)  # by the rules, and after the alert by the pages
    assert found[NIGHTS] == found[10]
    manifests = {path for path in found[10] if path.startswith("runs/")}
    before, _ = Runs(files).outlines(last=2)
    assert manifests == {
        f"runs/dt={before.date}/run={before.run}.json",
        f"runs/dt={TONIGHT}/run={night.manifest.run}.json",
    }


def test_pages_stay_small(night: Night, tmp_path: Path) -> None:
    """With a year of nights before it, no page of a night is above 300 kB."""
    files = Files(str(tmp_path / "store"))
    fill(night, files, 365)
    publish_tonight(night, files)
    site = files.below("dashboard")
    assert {one.path: one.size for one in site if _is_large(one)} == {}
    assert files.exists(f"dashboard/{TONIGHT}/index.html")


def test_pages_of_a_large_night_stay_small_too(tmp_path: Path) -> None:
    """Of 20,000 rows as many have a place as of 100,000: the worst, and a sample."""
    night = make_night(tmp_path / "demo", rows=20_000)
    own = night.files.below(f"dashboard/{TONIGHT}")
    assert night.manifest.source.rows >= 20_000
    assert {one.path: one.size for one in own if _is_large(one)} == {}
    assert sum(one.size for one in own) < MOST_BYTES


def _is_large(info: FileInfo) -> bool:
    return info.path.endswith(".html") and info.size > LARGEST_PAGE


def test_the_requests_to_a_bucket_do_not_grow_with_the_nights(
    night: Night, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole night, from its logs to its pages, after twenty nights and after fifty."""
    asked: Counter[str] = Counter()
    really = AioBaseClient._make_api_call

    async def counted(self: AioBaseClient, operation: str, parameters: object) -> object:
        asked[operation] += 1
        return await really(self, operation, parameters)

    monkeypatch.setattr(AioBaseClient, "_make_api_call", counted)
    made: list[Counter[str]] = []
    for nights in (20, NIGHTS):
        files = Files(f"{s3.uri}/{nights}")
        fill(night, files, nights)
        run_night(night.settings.model_copy(update={"store": files.root}), TONIGHT)  # warm
        unpublish(night, files)
        asked.clear()
        run_night(night.settings.model_copy(update={"store": files.root}), TONIGHT)
        made.append(asked.copy())
    few, many = made
    assert many == few, "requests by operation"
    assert few.total() <= MOST_REQUESTS
