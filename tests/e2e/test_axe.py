"""Every page for every reader: what axe-core finds, and the way to a row by the keyboard alone."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from ragmetrics.dashboard import write_label_page
from ragmetrics.records import LabelSuggestion
from tests.fakes.browsing import Visit
from tests.fakes.whole_site import BAD, PAGES, make_whole_site

GRAVE = ("serious", "critical")
MOST_TABS = 120


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with every page."""
    folder = tmp_path_factory.mktemp("site")
    make_whole_site(folder)
    return folder


def grave_findings(page: Any) -> list[str]:
    """What axe-core has against a page that bars somebody from it: rule, element and message."""
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in Axe().run(page).response["violations"]
        if violation["impact"] in GRAVE
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 390), ("light", 1280)])
def test_no_page_bars_anybody(browser: Any, site: Path, scheme: str, width: int) -> None:
    """axe-core finds nothing serious or critical: contrast, names, headings, focus, structure."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    visit = Visit(context.new_page())
    for name in PAGES:
        visit.page.goto((site / name).as_uri())
        visit.wait_for_charts()
        visit.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert grave_findings(visit.page) == [], name
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_rows_to_label_bars_nobody(browser: Any, tmp_path: Path, scheme: str) -> None:
    """The same of the page that `ragmetrics labels suggest` writes, with an answered item."""
    row = LabelSuggestion(
        id="1",
        user_input="When does it open?",
        night=date(2026, 11, 19),
        sampling_weight=1,
        metrics=["context_relevance", "context_recall", "faithfulness"],
        contexts=["It opens at nine."],
        response="At nine.",
        reference="It opens at nine.",
        sentences=["It opens at nine."],
    )
    write_label_page(tmp_path / "rows.html", [row])
    context = browser.new_context(color_scheme=scheme, viewport={"width": 390, "height": 900})
    visit = Visit(context.new_page())
    visit.page.goto((tmp_path / "rows.html").as_uri())
    visit.page.keyboard.press("2")
    visit.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert grave_findings(visit.page) == []
    assert visit.overflow() <= 0
    context.close()


def test_what_bars_somebody_is_found(visit: Visit) -> None:
    """Else the test of the pages would say nothing."""
    visit.page.set_content("<title>Pale</title><p style='color: #ccc'>Hardly to be read.</p>")
    assert any(found.startswith("color-contrast") for found in grave_findings(visit.page))


def test_the_keyboard_alone_reaches_a_row(visit: Visit, site: Path) -> None:
    """Tab and Enter lead from the overview to the night, and from there to a row's contexts."""
    page = visit.page
    page.goto((site / "index.html").as_uri())
    tab_to(page, "Open the night")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{BAD}/index.html")
    tab_to(page, "How is an invoice changed?")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{BAD}/rows.html#row=q-1")
    row = page.locator("[id='row=q-1']")
    assert row.locator(".contexts li").first.is_visible()
    assert row.evaluate("row => row.getBoundingClientRect().top < innerHeight")


def tab_to(page: Any, label: str) -> None:
    """Press Tab until the focus is on a link that says this; each stop on the way can be seen."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            """() => [document.activeElement.innerText,
                getComputedStyle(document.activeElement).outlineStyle]"""
        )
        assert focused[1] != "none", f"the focus on {focused[0]!r} cannot be seen"
        if focused[0].strip() == label:
            return
    raise AssertionError(f"no link {label!r} within {MOST_TABS} stops")
