"""The glossary: every word that a page leads to has its line, and each is one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ragmetrics.dashboard
from ragmetrics.dashboard.glossary import GROUPS, TERMS, anchor_of
from ragmetrics.dashboard.night_status import LABELS
from ragmetrics.dashboard.night_tables import STATUS
from ragmetrics.metrics import metrics
from ragmetrics.storage import Files
from tests.fakes.page_writing import write_assets
from tests.fakes.pages import Outline

TEMPLATES = Path(ragmetrics.dashboard.__file__).parent / "templates"


@pytest.fixture
def page(tmp_path: Path) -> str:
    """The glossary."""
    site = Files(str(tmp_path))
    write_assets(site, charts=False)
    return site.read("glossary.html").decode()


def test_every_metric_and_term_has_a_place(page: str) -> None:
    """With an address of its own."""
    places = [one.get("id") for one in Outline(page).all("div")]
    wanted = [f"metric-{name}" for name in metrics()] + [anchor_of(t) for t in TERMS]
    assert set(wanted) <= set(places)
    assert len(set(wanted)) == len(wanted)


def test_every_word_that_a_template_explains_is_there() -> None:
    """A template names terms by their key."""
    used = {
        name
        for template in TEMPLATES.glob("*.html")
        for name in re.findall(r'\bterm\("([^"]+)"', template.read_text("utf-8"))
    }
    assert used
    assert used <= set(TERMS)


def test_every_state_and_status_is_explained() -> None:
    """They stand on badges and in tables."""
    assert set(LABELS.values()) | set(STATUS.values()) <= set(TERMS)


def test_a_meaning_is_one_or_two_short_sentences() -> None:
    """It is shown at hover."""
    assert sum(map(len, GROUPS.values())) == len(TERMS)
    for term, line in TERMS.items():
        assert line[0].isupper() and line.endswith("."), term
        assert len(line) <= 200, term
        assert "\n" not in line


def test_an_unchanged_glossary_is_not_written_again(tmp_path: Path) -> None:
    """A night writes few files."""
    site = Files(str(tmp_path))
    write_assets(site, charts=False)
    written = (tmp_path / "glossary.html").stat().st_mtime_ns
    write_assets(site, charts=False)
    assert (tmp_path / "glossary.html").stat().st_mtime_ns == written
