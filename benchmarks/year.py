"""A year of nights: what publishing the 365th one writes and takes, beside the 10th.

    python -m benchmarks.year [--nights 365] [--rows 0] [--turns 5] [--no-bucket]

Two stores of the demo's nights differ in how many there are. Tonight is staged and scored in both;
it is published in one and the other in turns, and taken back in between, so that a machine that is
slower for a while is so for both. First in folders, then in a bucket: a server on this machine.
Then the pages are opened in headless Chromium, from the folder, where there is one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

from benchmarks.year_store import TONIGHT, PublishedNight, fill, make_night, unpublish
from ragmetrics.pipeline.publish import publish_run
from ragmetrics.pipeline.show import show_run
from ragmetrics.storage import Files
from tests.fakes import s3
from tests.fakes.processes import running

FEW = 10
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
_IS_PAINTED = "performance.getEntriesByName('first-contentful-paint').length"
_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
_LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


@dataclass(frozen=True)
class Published:
    """What publishing one night took and wrote."""

    seconds: float
    busy: float
    """Of them, in which this process computed."""
    written: Mapping[str, int]
    """Files that were written, and their bytes."""

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(self.written.values())


def publish_tonight(night: PublishedNight, files: Files) -> Published:
    """Publish tonight in a store made by `fill`."""
    settings = night.settings.model_copy(update={"store": files.root})
    written: dict[str, int] = {}
    write = Files.write

    def told(self: Files, path: str, data: bytes) -> None:
        written[self.uri(path)] = len(data)
        write(self, path, data)

    with patch.object(Files, "write", told):
        begun, computed = time.perf_counter(), time.process_time()
        show_run(settings, publish_run(settings, night.staged, datetime.now(UTC)))
        seconds, busy = time.perf_counter() - begun, time.process_time() - computed
    return Published(seconds, busy, written)


def compare(
    night: PublishedNight, few: Files, many: Files, turns: int
) -> list[tuple[Published, Published]]:
    """Publish tonight in both stores, in turns; the first turn warms up and is left out."""
    found = []
    for _ in range(turns + 1):
        found.append((publish_tonight(night, few), publish_tonight(night, many)))
        for files in (few, many):
            unpublish(night, files)
    return found[1:]


def report(
    nights: int = 365, rows: int = 0, turns: int = 5, *, bucket: bool = True
) -> Iterator[str]:
    """Make the stores and measure; a line for each store, and one for each page."""
    with tempfile.TemporaryDirectory(prefix="ragmetrics-bench-") as name:
        folder = Path(name)
        night = make_night(folder / "demo", rows)
        yield f"a night of {night.staged.source.rows:,} rows, {turns} turns, the median of each"
        local = [Files(str(folder / str(count))) for count in (FEW, nights)]
        yield from _lines("folder", night, local, nights, turns)
        if bucket:
            with _bucket() as uri:
                remote = [Files(f"{uri}/{count}") for count in (FEW, nights)]
                yield from _lines("bucket", night, remote, nights, turns)
        publish_tonight(night, local[1])
        yield from open_pages(folder / str(nights) / "dashboard")


def _lines(
    place: str, night: PublishedNight, stores: Sequence[Files], nights: int, turns: int
) -> Iterator[str]:
    few, many = stores
    fill(night, few, FEW)
    fill(night, many, nights)
    found = compare(night, few, many, turns)
    for side, count in enumerate((FEW, nights)):
        took = sorted(pair[side].seconds for pair in found)
        busy = statistics.median(pair[side].busy for pair in found)
        last = found[-1][side]
        yield (
            f"{place}, night {count:>3}: {statistics.median(took):.2f} s ({took[0]:.2f} to "
            f"{took[-1]:.2f}; {busy:.2f} s of processor), {len(last.written)} files, "
            f"{last.size / 1e6:.2f} MB"
        )
    ratio = statistics.median(more.seconds / less.seconds for less, more in found)
    busy = statistics.median(more.busy / less.busy for less, more in found)
    yield f"{place}: {ratio:.2f} times the time, {busy:.2f} times the processor"


@contextmanager
def _bucket() -> Iterator[str]:
    with running("tests.fakes.s3") as port:
        endpoint = f"http://127.0.0.1:{port}"
        os.environ.update(s3.environment(endpoint))
        s3.empty(endpoint)
        yield s3.make_bucket(endpoint).uri


def open_pages(site: Path) -> Iterator[str]:
    """Open the overview, and tonight's page and rows, each in a browser of its own."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        yield "no Chromium here: the pages were not opened"
        return
    pages = ["index.html", *(f"{TONIGHT}/{name}.html" for name in ("index", "rows", "changes"))]
    with sync_playwright() as playwright:
        for name in (page for page in pages if (site / page).exists()):
            browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto((site / name).resolve().as_uri(), wait_until="load")
            while not page.evaluate(_IS_PAINTED):  # their policy lets nobody wait for a function
                page.wait_for_timeout(20)
            painted, loaded = (page.evaluate(one) for one in (_PAINTED, _LOADED))
            size = (site / name).stat().st_size
            yield f"{name}: {size / 1e3:.0f} kB, painted {painted:.0f} ms, loaded {loaded:.0f} ms"
            browser.close()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.year")
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument("--rows", type=int, default=0, help="of a night; default: the demo's")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--bucket", action=argparse.BooleanOptionalAction, default=True)
    given = parser.parse_args()
    for line in report(given.nights, given.rows, given.turns, bucket=given.bucket):
        print(line, flush=True)


if __name__ == "__main__":
    main()
