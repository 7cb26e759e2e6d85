"""Pages of all gates and all calibrations are written where what they are made of changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragmetrics.dashboard import render_cache as made_of
from ragmetrics.dashboard.render_cache import MADE_OF, RenderCache
from ragmetrics.storage import Files

PAGE = "builds.html"


class Site:
    """A store with gates, and a site that counts how often it writes their page."""

    def __init__(self, folder: Path) -> None:
        self.files = Files(str(folder))
        self.site = self.files.at("dashboard")
        self.written = 0

    def refresh(self, dataset: str = "helpdesk", *, hide: bool = False) -> bool:
        """As whoever publishes does."""
        infos = self.files.glob("gates/*.json")
        return RenderCache(self.site, (dataset, hide)).unless_made(PAGE, infos, self._write)

    def _write(self) -> bool:
        self.written += 1
        self.site.write(PAGE, b"<!doctype html>")
        return True


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """One gate, and its page written."""
    made = Site(tmp_path)
    made.files.write("gates/blue.json", b"{}")
    assert made.refresh()
    return made


def test_a_page_is_written_once(site: Site) -> None:
    """A night that changes nothing of it writes nothing."""
    before = site.files.below()
    assert site.refresh()
    assert site.written == 1
    assert site.files.below() == before


def test_a_new_gate_and_a_changed_one_write_it_anew(site: Site) -> None:
    """Whatever changed among its files."""
    site.files.write("gates/green.json", b"{}")
    site.refresh()
    site.files.write("gates/green.json", b'{"verdict": "hold"}')
    site.refresh()
    site.files.remove("gates/green.json")
    site.refresh()
    assert site.written == 4


def test_so_do_another_look_and_another_name(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version's pages look otherwise; the page names the data set."""
    site.refresh("search")
    assert site.written == 2
    monkeypatch.setattr(made_of, "__version__", "9.9.9")
    site.refresh("search")
    assert site.written == 3


def test_so_does_hiding_all_texts(site: Site) -> None:
    """No word of a log stays on a page that was written before `redact`."""
    site.refresh(hide=True)
    site.refresh(hide=True)
    assert site.written == 2


@pytest.mark.parametrize("path", [PAGE, MADE_OF])
def test_a_page_that_was_removed_is_written_again(site: Site, path: str) -> None:
    """Or where what is known of it was removed."""
    site.site.remove(path)
    assert site.refresh()
    assert site.written == 2


def test_what_is_known_may_be_damaged(site: Site) -> None:
    """Then the page is written again."""
    site.site.write(MADE_OF, b"[1, 2")
    site.refresh()
    site.refresh()
    assert site.written == 2


def test_without_a_gate_the_page_is_written_once(tmp_path: Path) -> None:
    """It says that there is none; the first gate writes it anew."""
    empty = Site(tmp_path)
    assert empty.refresh()
    assert empty.refresh()
    assert empty.written == 1
    empty.files.write("gates/blue.json", b"{}")
    empty.refresh()
    assert empty.written == 2


def test_two_pages_do_not_forget_each_other(site: Site) -> None:
    """What is known of both stands in one file."""
    infos = site.files.glob("gates/*.json")

    def write() -> bool:
        site.site.write("calibration.html", b"<!doctype html>")
        return True

    RenderCache(site.site, ()).unless_made("calibration.html", infos, write)
    site.refresh()
    assert site.written == 1
