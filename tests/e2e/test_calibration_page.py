"""The page of calibrations as people see it: opened from a folder, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.records import JudgeInfo
from ragmetrics.storage import Files
from tests.e2e.test_dashboard import STROKE
from tests.fakes.browsing import Visit
from tests.fakes.calibrations import calibration, history, in_language, measured
from tests.fakes.nights import night
from tests.fakes.page_writing import write_assets, write_calibrations, write_night, write_overview

SERIES = {"light": "rgb(11, 102, 184)", "dark": "rgb(111, 177, 242)"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A night, and two judges on a set, of which one drifted in its third week."""
    folder = tmp_path_factory.mktemp("site")
    files = Files(str(folder))
    metrics = [
        measured(segments=[in_language("de", 0.5), in_language("en", 0.8)]),
        measured("context_recall", unit="statement"),
    ]
    known = history(
        calibration(judge=JudgeInfo(name="openai:gpt-x", fingerprint="f2")),
        *(calibration(week, metrics=metrics) for week in range(3)),
        drifted=("context_relevance",),
    )
    write_assets(files)
    write_night(files, night(), [], [], known.calibrations)
    write_overview(files, [night()], write_calibrations(files, known, "helpdesk"))
    return folder


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_without_complaint(
    browser: Any, site: Path, scheme: str, width: int
) -> None:
    """No message, no request elsewhere, no sideways scrolling; charts in the page's colours."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    visit = Visit(context.new_page())
    visit.watch()
    visit.page.goto((site / "calibration.html").as_uri())
    visit.page.wait_for_selector(".plot svg.main-svg")
    assert visit.page.locator(".curves .plot svg.main-svg").first.is_visible()
    visit.page.locator("summary", has_text="Figures").first.click()
    visit.page.wait_for_selector(".plot[id$='-trend'] svg.main-svg")
    charts = visit.page.locator(".plot")
    assert charts.count() == 5  # reliability of three, and a trend of the two that have one
    trend = visit.page.locator(".plot[id$='-trend']").first.get_attribute("id")
    assert visit.page.evaluate(STROKE, trend) == SERIES[scheme]
    assert visit.complaints == []
    assert visit.overflow() <= 0
    context.close()


def test_a_reader_finds_the_judge_from_the_night_and_the_overview(browser: Any, site: Path) -> None:
    """One click from the first page; from a night, to the very judge that scored it."""
    page = browser.new_page()
    page.goto((site / "index.html").as_uri())
    page.get_by_role("link", name="Judge calibration").click()
    page.wait_for_load_state()
    assert "How far to trust a judge" in page.locator("h1").inner_text()
    assert "agrees moderately with people" in page.locator("main p").first.inner_text()
    page.goto((site / "2026-11-10" / "index.html").as_uri())
    page.get_by_role("link", name="with people on towers").click()
    page.wait_for_load_state()
    judge = page.locator(":target")
    assert judge.locator("h3").inner_text().endswith("lexical")
    assert "drifted" in judge.locator("header").first.inner_text()
    page.close()


def test_without_scripts_there_are_tables(browser: Any, site: Path) -> None:
    """Without JavaScript the numbers are readable, and no chart is empty."""
    context = browser.new_context(java_script_enabled=False, color_scheme="light")
    page = context.new_page()
    page.goto((site / "calibration.html").as_uri())
    for judge in page.locator("summary", has_text="Figures").all():
        judge.click()
    assert page.get_by_text("Reliability as a table").first.is_visible()
    assert page.locator("table", has_text="0.8 to 0.9").first.is_visible()
    assert Visit(page).charts_of_the_page(SERIES["light"]) == [True] * 5
    context.close()
