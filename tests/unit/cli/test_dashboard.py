"""`ragmetrics dashboard --open`: a site on this machine, for who looks at it now."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from ragmetrics.config import load_settings
from ragmetrics.pipeline import NIGHTS, run_night, unpack_demo
from ragmetrics.storage import Files, Runs
from tests.fakes.browsing import ARGUMENTS
from tests.fakes.clients import Bucket
from tests.fakes.command import Run
from tests.fakes.http_server import Handler, serving
from tests.fakes.nights import ten_nights
from tests.fakes.processes import ROOT

TYPES = {
    "index.html": "text/html; charset=utf-8",
    "nights.js": "text/javascript; charset=utf-8",
    "metrics.prom": "text/plain; version=0.0.4; charset=utf-8",
    "2026-11-19/summary.html": "text/html; charset=utf-8",
}


def store(place: str) -> Files:
    """A store of two nights."""
    files = Files(place)
    for night in ten_nights()[-2:]:
        Runs(files).save(night)
    return files


class Page(Handler):
    """One page, whatever is asked for."""

    page = b""

    def take(self) -> None:
        """Answer with it."""
        self.answer(200, self.page, {"Content-Type": "text/html"})


class Serving:
    """The command at work, and where it says that the site is."""

    def __init__(self, process: subprocess.Popen[str], first: str, address: str) -> None:
        self.process, self.first, self.address = process, first, address

    def url(self, path: str) -> str:
        """Of a file of the site."""
        return self.address.replace("index.html", path)

    def end(self) -> tuple[int, str]:
        """Press Ctrl-C; how it ended, and what it had said to people."""
        self.process.send_signal(signal.SIGINT)
        _, told = self.process.communicate(timeout=240)
        return self.process.returncode, told


@contextmanager
def opened(folder: Path, *arguments: object) -> Iterator[Serving]:
    """The command in a process of its own, with a browser that notes what it is to open."""
    browser = folder / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{folder / "seen"}"\n')
    browser.chmod(0o755)
    environment = {**os.environ, "BROWSER": str(browser), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "ragmetrics", "dashboard", *map(str, arguments), "--open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
    )
    try:
        assert process.stdout is not None
        first, address = (process.stdout.readline().strip() for _ in range(2))
        yield Serving(process, first, address)
    finally:
        process.kill()
        process.communicate()


def seen(folder: Path) -> str:
    """What the browser was to open; it is started beside the site."""
    for _ in range(300):
        found = folder / "seen"
        if found.is_file() and (told := found.read_text().strip()):
            return told
        time.sleep(0.1)
    return "nothing"


@pytest.mark.process
def test_the_site_is_served_until_ctrl_c(tmp_path: Path) -> None:
    """On this machine, with the types of a bucket, opened in the browser; then it ends well."""
    files = store(str(tmp_path / "store"))
    with opened(tmp_path, files.root) as serving:
        assert serving.first == f"{files.root}/dashboard/index.html"
        assert serving.address.startswith("http://127.0.0.1:")
        for path, kind in TYPES.items():
            with urlopen(serving.url(path)) as answer:
                assert answer.headers["Content-Type"] == kind
                assert answer.read() == files.read(f"dashboard/{path}")
        assert seen(tmp_path) == serving.address
        code, told = serving.end()
    assert code == 0
    assert told.endswith("Press Ctrl-C to stop.\n")


@pytest.mark.process
def test_nothing_but_the_site_is_served(tmp_path: Path) -> None:
    """No list of a folder, nothing above it, and nothing to a page that calls itself otherwise."""
    files = store(str(tmp_path / "store"))
    with opened(tmp_path, files.root) as serving:
        for path in ("assets/", "../runs/", "%2e%2e/runs/", "nosuch.html"):
            with pytest.raises(HTTPError) as refused:
                urlopen(serving.url(path))
            assert refused.value.code == 404
            refused.value.close()
        port = int(serving.address.split(":")[2].split("/")[0])
        asked = http.client.HTTPConnection("127.0.0.1", port)
        asked.request("GET", "/index.html", headers={"Host": "evil.example"})
        assert asked.getresponse().status == 421
        asked.close()


def test_no_page_of_another_place_can_load_the_rows(tmp_path: Path, chromium: str) -> None:
    """They are scripts, which a page may load from anywhere: only those of the site itself do."""
    from playwright.sync_api import sync_playwright

    settings = load_settings(unpack_demo(tmp_path))
    run_night(settings, NIGHTS[0])
    with ExitStack() as stack:
        site = stack.enter_context(opened(tmp_path, settings.store))
        script = f'<script src="{site.url(f"{NIGHTS[0]}/rows-1.js")}"></script>'
        elsewhere = stack.enter_context(serving(Page, page=script.encode()))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        stack.callback(browser.close)
        page = browser.new_page()
        page.goto(site.url(f"{NIGHTS[0]}/rows.html"))
        assert page.evaluate("ROWS[0].rows.length") > 0
        page.goto(elsewhere)
        assert page.evaluate("globalThis.ROWS") is None


@pytest.mark.process
def test_a_port_that_is_taken_is_told(tmp_path: Path, run: Run) -> None:
    """In one line, with its number."""
    files = store(str(tmp_path / "store"))
    with opened(tmp_path, files.root) as serving:
        port = serving.address.split(":")[2].split("/")[0]
        ended = run("dashboard", files.root, "--open", "--port", port)
    assert ended.code == 2
    assert f"port {port}: cannot be used" in ended.err


def test_a_site_in_a_bucket_is_not_served_from_there(tmp_path: Path, run: Run) -> None:
    """Said before anything is written."""
    files = store(str(tmp_path / "store"))
    ended = run("dashboard", files.root, "--out", "memory://site", "--open")
    assert ended.code == 2
    assert "set --out to a folder" in ended.err


def test_a_folder_of_other_files_is_not_served(tmp_path: Path, run: Run) -> None:
    """`--out` may name a home by mistake: nothing is written to it or shown to anybody."""
    files = store(str(tmp_path / "store"))
    home = tmp_path / "home"
    home.mkdir()
    (home / "id_rsa").write_text("secret")
    ended = run("dashboard", files.root, "--out", home, "--open")
    assert ended.code != 0
    assert "has other files" in ended.err
    assert [path.name for path in home.iterdir()] == ["id_rsa"]


def test_a_store_in_a_bucket_is_served_from_a_temporary_folder(tmp_path: Path, s3: Bucket) -> None:
    """Which is gone afterwards; the bucket stays as it was."""
    files = store(f"{s3.uri}/store")
    before = s3.keys("store/")
    with opened(tmp_path, files.root) as serving:
        with urlopen(serving.url("2026-11-19/index.html")) as answer:
            assert b"context_recall" in answer.read()
        folder = Path(serving.first).parent
        assert folder.is_dir()
        assert serving.end()[0] == 0
    assert not folder.exists()
    assert s3.keys("store/") == before
