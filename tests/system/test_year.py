"""A year of nights, reduced to fifty: what publishing one more reads and writes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from aiobotocore.client import AioBaseClient

from benchmarks.year import Published, publish_tonight
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


@dataclass(frozen=True)
class Evening:
    """One more night in a store where one was published before it."""

    files: Files
    published: Published
    read: list[str]
    """The paths of all small files that were read, as they are."""


@pytest.fixture(scope="module")
def evenings(night: Night, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Evening]:
    """In folders, by how many nights there are."""
    folder, really, paths = tmp_path_factory.mktemp("stores"), Files.read, list[str]()

    def told(self: Files, path: str) -> bytes:
        paths.append(path)
        return really(self, path)

    evenings = {}
    for nights in (10, NIGHTS):
        files = Files(str(folder / str(nights)))
        fill_and_warm(night, files, nights)
        paths.clear()
        with patch.object(Files, "read", told):
            published = publish_tonight(night, files)
        evenings[nights] = Evening(files, published, sorted(paths))
    return evenings


def fill_and_warm(night: Night, files: Files, nights: int) -> None:
    """A store of so many nights, in which what all of them share was written."""
    fill(night, files, nights)
    publish_tonight(night, files)
    unpublish(night, files)


def assert_few(night: Night, published: Published, files: Files) -> None:
    """At most 14 files, of less than 5 MB together: the night's own pages, the overview, the
    questions, its manifest and its month, and nothing that all nights share."""
    names = {uri.removeprefix(f"{files.root}/") for uri in published.written}
    assert len(names) <= MOST_FILES
    assert published.size < MOST_BYTES
    own = {
        f"runs/dt={TONIGHT}/run={night.manifest.run}.json",
        f"history/{TONIGHT:%Y-%m}.json",
        "dashboard/index.html",
        f"dashboard/{TONIGHT}/index.html",
    }
    assert own <= names
    shared = ("dashboard/assets/", "dashboard/builds", "dashboard/calibration")
    assert not any(name.startswith(shared) for name in names)


def test_one_more_night_writes_few_files(night: Night, evenings: dict[int, Evening]) -> None:
    """What all nights share stands there from the first night on."""
    assert_few(night, evenings[NIGHTS].published, evenings[NIGHTS].files)


def test_what_is_read_does_not_grow_with_the_nights(
    night: Night, evenings: dict[int, Evening]
) -> None:
    """But for a file a month: of the nights before, only the manifest of the newest is read, whose
    segments the page compares with."""
    others: dict[int, list[str]] = {}
    for nights, evening in evenings.items():
        others[nights] = [path for path in evening.read if not path.startswith("history/")]
        months = {path for path in evening.read if path.startswith("history/")}
        assert len(months) == {10: 1, NIGHTS: 2}[nights]
        times = len(evening.read) - len(others[nights])
        assert times <= 2 * len(months)  # by the rules, and after the alert by the pages
    assert others[NIGHTS] == others[10]
    manifests = {path for path in others[10] if path.startswith("runs/")}
    before, _ = Runs(evenings[NIGHTS].files).outlines(last=2)
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
    assert {page.path: page.size for page in site if _is_large(page)} == {}
    assert files.exists(f"dashboard/{TONIGHT}/index.html")


def test_pages_of_a_large_night_stay_small_too(tmp_path: Path) -> None:
    """Of 20,000 rows as many have a place as of 100,000: the worst, and a sample."""
    night = make_night(tmp_path / "demo", rows=20_000)
    own = night.files.below(f"dashboard/{TONIGHT}")
    assert night.manifest.source.rows >= 20_000
    assert {page.path: page.size for page in own if _is_large(page)} == {}
    assert sum(page.size for page in own) < MOST_BYTES


def _is_large(info: FileInfo) -> bool:
    return info.path.endswith(".html") and info.size > LARGEST_PAGE


def test_a_bucket_is_asked_and_gets_no_more_with_the_nights(
    night: Night, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole night, from its logs to its pages, makes as many requests after twenty nights as
    after fifty; and one more night writes as few files as in a folder."""
    asked: Counter[str] = Counter()
    really = AioBaseClient._make_api_call

    async def counted(self: AioBaseClient, operation: str, parameters: object) -> object:
        asked[operation] += 1
        return await really(self, operation, parameters)

    monkeypatch.setattr(AioBaseClient, "_make_api_call", counted)
    made: list[Counter[str]] = []
    for nights in (20, NIGHTS):
        files = Files(f"{s3.uri}/{nights}")
        fill_and_warm(night, files, nights)
        asked.clear()
        run_night(night.settings.model_copy(update={"store": files.root}), TONIGHT)
        made.append(asked.copy())
    unpublish(night, files)
    assert_few(night, publish_tonight(night, files), files)
    few, many = made
    assert many == few, "requests by operation"
    assert few.total() <= MOST_REQUESTS
