"""Pages of other packages: they are written, linked and explained where the settings name them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragmetrics.config import make_settings
from ragmetrics.dashboard import PAGES, page_writer, rebuild_dashboard
from ragmetrics.pipeline import run_night
from ragmetrics.pipeline.doctor import examine
from ragmetrics.plugins import UnusablePlugin
from ragmetrics.storage import open_store
from ragmetrics.testing import check_page
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.pages import Outline
from tests.fakes.plugins import plugin_site

HEAD = '''"""The longest questions of a night."""
import time
from ragmetrics import Page

TEMPLATE = """{% extends "base.html" %}
{% block title %}Longest questions{% endblock %}
{% block main %}<h1 class="title">Longest questions</h1>
<ol>{% for row in rows %}<li><bdi>{{ row.user_input }}</bdi></li>{% endfor %}</ol>{% endblock %}"""

def render(shown):
    rows = sorted((kept.row for kept in shown.rows), key=lambda row: -len(row.user_input))
    return shown.render(TEMPLATE, rows=rows) if rows else None
'''
GOOD = HEAD + (
    'longest = Page("longest", "Longest questions", __doc__, render,'
    ' terms=(("longest question", "The one with the most letters."),))\n'
)
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package with a page."""
    (tmp_path / "packages").mkdir()
    with plugin_site(tmp_path / "packages", monkeypatch) as make:
        yield make


def nightly(folder: Path, *pages: str) -> Path:
    """Run a night with these pages; return the site."""
    settings = make_settings(
        {
            "store": str(folder / "store"),
            "logs": str(folder / "logs/{date}.jsonl"),
            "metrics": ["context_relevance"],
            "pages": pages,
        }
    )
    write_jsonl(folder / f"logs/{NIGHT}.jsonl", make_rows(6))
    run_night(settings, NIGHT)
    return folder / "store/dashboard"


def test_a_named_page_is_written_and_linked(tmp_path: Path, install: Install) -> None:
    """Beside the night's other pages; also where the site is written anew, without the settings."""
    install("ragmetrics.pages", "house", GOOD, "longest")
    site = nightly(tmp_path, "longest")
    made = (site / f"{NIGHT}/longest.html").read_text("utf-8")
    assert "Longest questions" in Outline(made).text
    files = open_store(make_settings({"store": str(tmp_path / "store")}))
    rebuild_dashboard(files, files.at("again"))
    assert (tmp_path / f"store/again/{NIGHT}/longest.html").read_text("utf-8") == made
    night = (site / f"{NIGHT}/index.html").read_text("utf-8")
    assert '<a class="button" href="longest.html">Longest questions</a>' in night


def test_its_terms_are_in_the_glossary(tmp_path: Path, install: Install) -> None:
    """As soon as the page is used."""
    install("ragmetrics.pages", "house", GOOD, "longest")
    glossary = nightly(tmp_path, "longest") / "glossary.html"
    assert "The one with the most letters." in glossary.read_text("utf-8")


def test_it_passes_the_conformance_test(install: Install) -> None:
    """As bundled pages do."""
    install("ragmetrics.pages", "house", GOOD, "longest")
    check_page(PAGES.find("longest"))


def test_a_page_that_prints_markup_does_not_pass(install: Install) -> None:
    """A text that its template marks as safe becomes an element."""
    unsafe = GOOD.replace("{{ row.user_input }}", "{{ row.user_input | safe }}")
    install("ragmetrics.pages", "house", unsafe, "longest")
    with pytest.raises(AssertionError, match="this does not hold"):
        check_page(PAGES.find("longest"))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise SystemExit(3)", "SystemExit"),
        ("return 'text'", "it is str, not bytes"),
        ("time.sleep(60)", "it took over 0.05 s"),
    ],
)
def test_a_page_that_fails_costs_only_itself(
    tmp_path: Path,
    install: Install,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    body: str,
    problem: str,
) -> None:
    """The night's other pages are written and do not link to it; the reason is logged."""
    if "sleep" in body:
        monkeypatch.setattr(page_writer, "RENDER_SECONDS", 0.05)
    broken = f"{HEAD}\ndef fails(shown):\n    {body}\n"
    broken += 'longest = Page("longest", "Longest", __doc__, fails)\n'
    install("ragmetrics.pages", "house", broken, "longest")
    site = nightly(tmp_path, "longest")
    assert not (site / f"{NIGHT}/longest.html").exists()
    assert "longest.html" not in (site / f"{NIGHT}/index.html").read_text("utf-8")
    assert problem in caplog.text


def test_a_page_that_is_not_installed_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The night goes on."""
    nightly(tmp_path, "longest")
    assert "a page is not written: no page 'longest'" in caplog.text


@pytest.mark.parametrize(
    ("name", "more"), [("index", ""), ("messages", ""), ("longest", ", is_first=True")]
)
def test_no_page_takes_the_place_of_another(install: Install, name: str, more: str) -> None:
    """Whether by its name or by its flag."""
    source = f'{HEAD}{name} = Page("{name}", "Longest", __doc__, render{more})\n'
    install("ragmetrics.pages", "house", source, name)
    with pytest.raises(UnusablePlugin, match="there is already a page of that name"):
        PAGES.find(name)


def test_doctor_names_a_page_that_cannot_be_used(tmp_path: Path, install: Install) -> None:
    """Before a night does."""
    install("ragmetrics.pages", "house", "raise ValueError('no')", "longest")
    settings = make_settings({"store": str(tmp_path / "store"), "pages": ["longest"]})
    found = [check for check in examine(settings, NIGHT) if check.name.startswith("pages")]
    assert [check.state for check in found] == ["failed"]
    assert "page 'longest' of house cannot be imported" in found[0].text
