"""The overview in a real browser: the calendar and the words that explain themselves."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.records import JudgeInfo
from ragmetrics.records.judging import Usage
from ragmetrics.storage import Files
from tests.fakes.browsing import Visit, options
from tests.fakes.nights import FIRST, night
from tests.fakes.page_writing import write_assets, write_night, write_overview

SHAPES = """() => Object.fromEntries([...document.querySelectorAll('.months a')].map(a =>
    [a.className, getComputedStyle(a, '::after').maskImage]))"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty nights: two judges, two builds of the index, money, a day without a night."""
    folder = tmp_path_factory.mktemp("site")
    files = Files(str(folder))
    llm = JudgeInfo(name="gpt", fingerprint="f2")
    paid = Usage(requests=400, answered_from_store=50, prompt_tokens=90_000, usd=1.25)
    early = [night(i) for i in range(20) if i != 7]
    late = [night(i, recall=0.9 - i % 3 / 50, judge=llm, usage=paid) for i in range(20, 39)]
    nights = [*early, *late, night(39, recall=0.7, judge=llm, usage=paid)]
    write_assets(files)
    for manifest in (*nights[-2:], night(9)):
        write_night(files, manifest, nights[:1], [])
    write_overview(files, nights, died=[FIRST + timedelta(days=7)])
    return folder


def test_every_state_has_a_shape_of_its_own(visit: Visit, site: Path) -> None:
    """In the calendar a night's state is never its colour alone."""
    visit.page.goto((site / "index.html").as_uri())
    shapes = visit.page.evaluate(SHAPES)
    assert {"is-ok", "is-firing"} <= set(shapes)
    assert len(set(shapes.values())) == len(shapes)
    assert all(shape.startswith("url(") for shape in shapes.values())


def test_a_day_opens_its_night(visit: Visit, site: Path) -> None:
    """Also one that is too old for the trends; a day without a night is no link, and says so."""
    page = visit.page
    page.goto((site / "index.html").as_uri())
    gap = page.locator(".months td[title='a run began and did not end']")
    assert gap.locator("a").count() == 0
    page.locator(".months a[href='2026-11-19/index.html']").click()
    page.wait_for_url("**/2026-11-19/index.html")
    assert "Night of 2026-11-19" in page.locator(".hero").inner_text()


def test_the_keyboard_reads_what_a_word_means(visit: Visit, site: Path) -> None:
    """At focus the glossary's line shows beside the word, and Enter opens the glossary there."""
    page = visit.page
    page.goto((site / "index.html").as_uri())
    page.locator(".sub a.term").first.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    shown = "getComputedStyle(document.activeElement, '::after').content"
    assert "One retrieval from the log" in page.evaluate(shown)
    page.keyboard.press("Enter")
    page.wait_for_url("**/glossary.html#term-row")
    assert "One retrieval from the log" in page.locator(":target").inner_text()


@options(viewport={"width": 390, "height": 900})
def test_no_meaning_leaves_a_narrow_window(visit: Visit, site: Path) -> None:
    """Wherever the word stands, its meaning is seen whole and moves nothing."""
    page = visit.page
    page.goto((site / "index.html").as_uri())
    visit.wait_for_charts()
    page.keyboard.press("Tab")  # from here on focus is by keyboard
    for word in page.locator("a.term >> visible=true").all():
        word.focus()
        assert page.evaluate("getComputedStyle(document.activeElement, '::after').position") == (
            "fixed"
        )
        assert visit.overflow() <= 0


def test_the_keyboard_opens_a_night(visit: Visit, site: Path) -> None:
    """Tab by tab from the top of the page; each stop can be seen."""
    page = visit.page
    page.goto((site / "index.html").as_uri())
    for _ in range(14):
        page.keyboard.press("Tab")
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate(outline) == "solid"
        if page.evaluate("document.activeElement.className") == "button main":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/2026-12-19/index.html")


def test_charts_break_where_the_judge_changed(visit: Visit, site: Path) -> None:
    """The line is not drawn across, and a label says why."""
    visit.page.goto((site / "index.html").as_uri())
    visit.wait_for_charts()
    chart = visit.page.locator("#plot-context_recall")
    assert "judge changed" in chart.locator(".annotation-text").all_text_contents()
    line = chart.locator(".scatterlayer path.js-line").evaluate_all(
        "paths => paths.filter(p => p.style.strokeWidth === '2px').map(p => p.getAttribute('d'))"
    )
    assert len(line) == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 1600])
def test_no_label_leaves_its_card(browser: Any, site: Path, width: int, scheme: str) -> None:
    """Nothing is cut off at the edge of the window, whatever its width."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    visit = Visit(context.new_page())
    visit.watch()
    visit.page.goto((site / "index.html").as_uri())
    visit.wait_for_charts()
    assert visit.overflow() <= 0
    outside = visit.page.evaluate(
        """() => [...document.querySelectorAll('main :not(.sr):not(.scroll *):not(svg *)')]
            .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.strip'))
            .map(e => e.className)"""
    )
    assert outside == []
    assert visit.complaints == []
    context.close()


def test_a_year_of_nights_is_on_one_page(visit: Visit, tmp_path: Path) -> None:
    """Every night is a day of the calendar; the older months unfold."""
    files = Files(str(tmp_path))
    write_assets(files)
    write_overview(files, [night(i) for i in range(400)])
    page = visit.page
    page.goto((tmp_path / "index.html").as_uri())
    assert page.locator(".months a").count() == 400
    old = page.locator(".months a").last
    assert not old.is_visible()
    page.locator("#nights ~ details > summary").click()
    assert old.is_visible()
