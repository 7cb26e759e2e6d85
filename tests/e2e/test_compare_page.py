"""Comparisons as people see them: a night's changes, a build's page, two sides that were asked for;
opened from a folder, in a real browser.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.dashboard import write_comparison
from ragmetrics.records import Segment
from ragmetrics.storage import Files
from tests.fakes.browsing import Visit, options
from tests.fakes.comparisons import change, comparison, moved_row
from tests.fakes.gated import gate, incomparable, promoted
from tests.fakes.nights import HOSTILE, night
from tests.fakes.page_writing import (
    write_assets,
    write_build,
    write_builds,
    write_changes,
    write_night,
    write_overview,
)

PAGES = (
    "2026-11-10/changes.html",
    "2026-11-11/changes.html",
    "2026-11-12/changes.html",
    "builds.html",
    "builds/idx-43.html",
    "builds/idx-45.html",
    "compare/a--b.html",
)
LONG = "x" * 90


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A first night, one that fell, one whose log is hostile; builds; and a comparison."""
    folder = tmp_path_factory.mktemp("site")
    files, nights = Files(str(folder)), [night(0), night(1), night(2)]
    write_assets(files)
    write_changes(files, nights[0], None, None)
    write_changes(files, nights[1], nights[0], comparison())
    write_changes(files, nights[2], nights[1], comparison(HOSTILE))
    for number, manifest in enumerate(nights):
        write_night(files, manifest, nights[:number], [], changed_since=nights[0].date)
    gates = [incomparable(), promoted(), gate()]
    for decided in gates:
        write_build(files, decided, comparison() if decided.metrics else None)
    write_overview(files, nights, builds=write_builds(files, gates))
    wide = comparison(
        LONG, rows=[moved_row(1, LONG * 5)], metrics=[change(), change(LONG, -0.01, reason=LONG)]
    )
    write_comparison(files, "compare/a--b.html", wide)
    return folder


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_without_complaint(browser: Any, site: Path, scheme: str, width: int) -> None:
    """No message, no request elsewhere, no sideways scrolling, however long a word is."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    for name in PAGES:
        visit = Visit(context.new_page())
        visit.watch()
        visit.page.goto((site / name).as_uri())
        assert visit.complaints == [], name
        assert visit.overflow() <= 0, name
    context.close()


@options(java_script_enabled=False)
def test_without_scripts_all_of_it_is_there(visit: Visit, site: Path) -> None:
    """Numbers, drawn intervals, and the contexts of a question that moved, once it is opened."""
    page = visit.page
    page.goto((site / "2026-11-11" / "changes.html").as_uri())
    first = page.locator(".compared tbody tr").first
    assert "worse" in first.inner_text()
    drawn = first.locator("svg.span")
    assert drawn.is_visible()
    assert drawn.evaluate("svg => svg.getBoundingClientRect().width") > 150
    axis = page.locator(".compared thead svg.axis").first
    assert [text.text_content() for text in axis.locator("text").all()][-2:] == ["0", "+0.1"]
    row = page.locator("#row-1")
    row.locator("summary").click()
    assert [one.inner_text() for one in row.locator(".fate").all()] == [
        "− left",
        "+ came",
        "↕ up from 3 to 2",
        "≠ down from 2 to 3, with another text",
        "= stayed",
    ]


@options(java_script_enabled=False)
def test_a_list_of_contents_leads_to_each_part(visit: Visit, site: Path) -> None:
    """On the long pages, without scripts: to each tag that compares."""
    page = visit.page
    for name in ("2026-11-11/changes.html", "builds/idx-43.html", "compare/a--b.html"):
        page.goto((site / name).as_uri())
        contents = page.get_by_role("navigation", name="On this page")
        for link in contents.get_by_role("link").all():
            place = page.locator(f"[id='{(link.get_attribute('href') or '')[1:]}']")
            assert place.is_visible(), link.inner_text()
    page.goto((site / "2026-11-11/changes.html").as_uri())
    said = page.get_by_role("navigation", name="On this page").get_by_role("link")
    assert [one.inner_text() for one in said.all()] == [
        "Metrics",
        "By section: 1 worse",
        "2 questions that moved",
        "What was compared",
    ]


@options(viewport={"width": 360, "height": 800})
def test_a_narrow_window_shows_the_difference_first(visit: Visit, site: Path) -> None:
    """At the top of each line, with its verdict in words below; nothing scrolls sideways."""
    page = visit.page
    for name in ("2026-11-11/changes.html", "builds/idx-43.html", "builds.html"):
        page.goto((site / name).as_uri())
        lines = page.locator(".compared tbody tr:has(.by)").all()
        assert lines, name
        for line in lines:
            box, by, says = (
                part.bounding_box() for part in (line, line.locator(".by"), line.locator(".says"))
            )
            assert by["y"] - box["y"] < 16 and by["x"] + by["width"] <= 360, name
            assert says["y"] > by["y"] and says["x"] + says["width"] <= 360, name
        for table in page.locator(".scroll:has(> .compared)").all():
            assert table.evaluate("box => box.scrollWidth - box.clientWidth") <= 1, name


def test_from_the_night_to_the_contexts_that_left(visit: Visit, site: Path) -> None:
    """One click to what changed, one to the question."""
    page = visit.page
    page.goto((site / "2026-11-11" / "index.html").as_uri())
    page.get_by_role("link", name="Compare with 2026-11-10").click()
    page.wait_for_load_state()
    assert page.url.endswith("2026-11-11/changes.html")
    page.locator("#row-2 summary").click()
    assert "− left" in page.locator("#row-2").inner_text()
    assert visit.complaints == []


def test_from_the_overview_to_the_evidence_of_a_held_build(visit: Visit, site: Path) -> None:
    """Two clicks; and back to the list."""
    page = visit.page
    page.goto((site / "index.html").as_uri())
    page.get_by_role("link", name="Index builds").first.click()
    page.wait_for_load_state()
    page.get_by_role("link", name="idx-43").click()
    page.wait_for_load_state()
    assert page.url.endswith("builds/idx-43.html")
    assert "Hold: 1 of 2 metrics is" in page.locator("h1").inner_text()
    assert page.locator("#row-1 .retrieved li").count() == 5
    crumbs = page.get_by_role("navigation", name="Breadcrumb")
    crumbs.get_by_role("link", name="Builds").click()
    page.wait_for_load_state()
    assert page.url.endswith("builds.html")


def test_a_first_night_says_that_there_is_nothing_to_compare(visit: Visit, site: Path) -> None:
    """A designed page with a way back, and no empty table."""
    page = visit.page
    page.goto((site / "2026-11-10" / "changes.html").as_uri())
    assert "nothing to compare with yet" in page.locator("h1").inner_text()
    assert page.locator("table").count() == 0
    page.get_by_role("link", name="Open the night").click()
    page.wait_for_load_state()
    assert page.url.endswith("2026-11-10/index.html")


def test_hostile_texts_are_inert(visit: Visit, site: Path) -> None:
    """Markup in questions, contexts, tags and names is shown as text."""
    page = visit.page
    page.goto((site / "2026-11-12" / "changes.html").as_uri())
    main = page.locator("main")
    assert "<script>alert(1)</script>" in main.inner_text()
    assert main.locator("script, img").count() == 0
    assert visit.complaints == []


@options(viewport={"width": 1280, "height": 900})
def test_tables_fit_the_usual_window(visit: Visit, site: Path) -> None:
    """No column of the numbers is out of sight at 1280 pixels."""
    for name in ("2026-11-11/changes.html", "builds/idx-43.html", "builds.html"):
        visit.page.goto((site / name).as_uri())
        for table in visit.page.locator("main .scroll").all():
            assert table.evaluate("box => box.scrollWidth - box.clientWidth") <= 1, name


@options(viewport={"width": 1280, "height": 800})
def test_no_table_is_wider_than_its_page(visit: Visit, tmp_path: Path) -> None:
    """With a metric of a long name that is only significant before the correction."""
    found = change("context_relevancy_chunks", -0.018)
    near = found.model_copy(
        update={"low": -0.034, "high": -0.003, "p_value": 0.0095, "p_adjusted": 0.054}
    )
    files, nights = Files(str(tmp_path)), [night(0), night(1)]
    write_assets(files)
    segments = [near.model_copy(update={"segment": Segment(tag="section", value="integrations")})]
    both = comparison(metrics=[near, change("response_relevancy")], segments=segments)
    write_changes(files, nights[1], nights[0], both)
    visit.page.goto((tmp_path / "2026-11-11/changes.html").as_uri())
    tables = visit.page.locator("main .scroll:has(.compared)").all()
    assert tables
    over = "table => table.scrollWidth - table.clientWidth"
    assert [table.evaluate(over) for table in tables] == [0] * len(tables)
