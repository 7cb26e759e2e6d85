"""The dashboard as people see it: opened from a folder, in a real browser, without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.records import JudgeInfo, JudgeSummary, Segment, Source, UnwatchedDrop, WorstRow
from ragmetrics.storage import Files
from tests.fakes.browsing import Visit, options
from tests.fakes.nights import (
    METRICS,
    finding,
    night,
    summary,
    ten_nights,
    worst_row,
    worst_rows,
)
from tests.fakes.page_writing import write_assets, write_night, write_overview

SERIES = {"light": "rgb(11, 102, 184)", "dark": "rgb(111, 177, 242)"}
STROKE = """id => [...document.querySelectorAll(`#${id} .scatterlayer path.js-line`)]
    .filter(path => path.getBoundingClientRect().width && path.style.strokeWidth === "2px")
    .map(path => path.style.stroke)[0]"""


WIDE_TABLES = """() => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  return [...document.querySelectorAll(".scroll")]
    .filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.ariaLabel);
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of eleven nights: one regressed, the newest without data."""
    folder = tmp_path_factory.mktemp("site")
    files = Files(str(folder))
    empty = Source(logs="logs/", files=0, rows=0, problem="no file under logs/")
    nights = [*ten_nights(), night(10, metrics=[], segments=[], findings=[], source=empty)]
    write_assets(files)
    for i, manifest in enumerate(nights):
        write_night(files, manifest, nights[:i], worst_rows())
    write_overview(files, nights[:10])
    return folder


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_from_a_folder(browser: Any, site: Path, scheme: str, width: int) -> None:
    """Every page opens without a message, a request elsewhere, or sideways scrolling; on a
    telephone no table is wider than its box either.
    """
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    pages = ("index", "2026-11-19/index", "2026-11-19/rows", "2026-11-20/index", "glossary")
    for name in pages:
        visit = Visit(context.new_page())
        visit.watch()
        visit.page.goto((site / f"{name}.html").as_uri())
        visit.wait_for_charts()
        assert visit.complaints == []
        assert visit.overflow() <= 0
        assert visit.page.evaluate(WIDE_TABLES) == []
    context.close()


@options(viewport={"width": 420, "height": 900})
def test_long_names_fit_a_narrow_window(visit: Visit, tmp_path: Path) -> None:
    """A word without a place to wrap makes no page scroll sideways, nor a chart leave its card."""
    files, word = Files(str(tmp_path)), "x" * 90
    metric, judge = "context_precision_without_reference", f"openai:{word}"
    panel = [JudgeSummary(name=name, mean=0.4, scored=9, failed=1) for name in (word, "b")]
    fall = {"metric": metric, "before": 0.89, "now": 0.58, "label": "7 nights before"}
    names: dict[str, Any] = {
        "dataset": word,
        "judge": JudgeInfo(name=judge, fingerprint="f" * 64),
        "metrics": [summary(metric, 0.5, judge, judges=panel), summary(word, 0.4, judge)],
        "segments": [summary(metric, 0.3, judge, segment=Segment(tag=word, value=word))],
        "findings": [finding(word, level="suspect", rule=word, message=word)],
        "falls": [
            UnwatchedDrop.model_validate(
                {**fall, "drop": 0.3, "low": 0.2, "high": 0.4, "questions": 9}
            )
        ],
        "worst": [WorstRow(id=word, metric=metric, value=0.0, user_input=word * 3)],
        "problems": [word],
    }
    manifest = night(**names)
    write_assets(files)
    write_night(files, manifest, [], [worst_row(word, word * 3)])
    write_overview(files, [manifest])
    for name in ("index", "2026-11-10/index", "2026-11-10/rows"):
        visit.page.goto((tmp_path / f"{name}.html").as_uri())
        visit.wait_for_charts()
        assert visit.overflow() <= 0, name
        plots = visit.page.locator(".plot").all()
        assert all(plot.evaluate("p => p.scrollWidth <= p.clientWidth + 1") for plot in plots)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_drawn_in_the_colours_of_the_page(browser: Any, site: Path, scheme: str) -> None:
    """Charts take their colours from the style sheet, and follow when the scheme changes."""
    page = browser.new_page(color_scheme=scheme)
    page.goto((site / "index.html").as_uri())
    page.wait_for_selector(".plot svg.main-svg")
    assert page.locator(".plot").count() == len(METRICS) + 2
    wait_for_colour(page, SERIES[scheme])
    other = "dark" if scheme == "light" else "light"
    page.emulate_media(color_scheme=other)
    wait_for_colour(page, SERIES[other])
    page.close()


def wait_for_colour(page: Any, colour: str) -> None:
    """Wait until the line of a chart has this colour."""
    page.wait_for_function(f"colour => ({STROKE})('plot-context_recall') === colour", arg=colour)


def test_drawn_charts_fold_their_tables(visit: Visit, site: Path) -> None:
    """A table folds once its chart is drawn, and opens at a click."""
    visit.page.goto((site / "index.html").as_uri())
    visit.wait_for_charts()
    table = visit.page.locator("#trend-context_recall table")
    assert not table.is_visible()
    visit.page.locator("#trend-context_recall summary").click()
    assert "0.700" in table.inner_text()


@options(java_script_enabled=False, color_scheme="light")
def test_without_scripts_there_are_tables(visit: Visit, site: Path) -> None:
    """Without JavaScript the numbers are readable, and no chart is empty."""
    visit.page.goto((site / "index.html").as_uri())
    assert visit.page.locator("#trend-context_recall table").is_visible()
    assert visit.charts_of_the_page(SERIES["light"]) == [True] * (len(METRICS) + 2)


@options(color_scheme="light")
def test_without_plotly_there_are_tables(visit: Visit, site: Path) -> None:
    """A lost asset costs what Plotly adds to the charts, not the charts and the numbers."""
    visit.page.route("**/plotly-*", lambda route: route.abort())
    visit.page.goto((site / "index.html").as_uri())
    visit.page.wait_for_selector("html.plain")
    assert visit.page.locator("#trend-context_recall table").is_visible()
    assert visit.charts_of_the_page(SERIES["light"]) == [True] * (len(METRICS) + 2)


def test_the_page_opens_before_plotly_is_asked_for(visit: Visit, site: Path) -> None:
    """While its five megabytes are on their way the page is there, and its links work."""
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    visit.page.route("**/plotly-*", hold)
    with visit.page.expect_request("**/plotly-*"):
        visit.page.goto((site / "index.html").as_uri(), wait_until="load")
    assert visit.page.locator("html.drawing").count() == 1
    visit.page.get_by_role("link", name="Open the night").focus()
    held[0].continue_()
    visit.wait_for_charts()


def test_the_worst_row_is_two_clicks_away(visit: Visit, site: Path) -> None:
    """From the overview to the night, and from there to the row, which is in view."""
    page = visit.page
    page.goto((site / "index.html").as_uri())
    page.get_by_role("link", name="Open the night").click()
    page.wait_for_load_state()
    page.get_by_role("link", name="How is an invoice changed?").click()
    row = page.locator("[id='row=q-1']")
    assert page.url.endswith("2026-11-19/rows.html#row=q-1")
    assert "How is an invoice changed?" in row.inner_text()
    assert row.evaluate("row => row.getBoundingClientRect().top < innerHeight")
    assert visit.complaints == []


def test_a_night_links_to_the_next(visit: Visit, site: Path) -> None:
    """Also where its page was written before the next night was there; the newest has none."""
    page = visit.page
    page.goto((site / "2026-11-18/index.html").as_uri())
    page.get_by_role("link", name="2026-11-19").click()
    page.wait_for_load_state()
    assert page.url.endswith("2026-11-19/index.html")
    assert not page.locator("#next").is_visible()
    page.get_by_role("link", name="2026-11-18").click()
    page.wait_for_load_state()
    assert page.url.endswith("2026-11-18/index.html")
    assert visit.complaints == []


@options(java_script_enabled=False)
def test_without_scripts_a_night_links_to_all_nights(visit: Visit, site: Path) -> None:
    """From there the next one is a click away."""
    page = visit.page
    page.goto((site / "2026-11-18/index.html").as_uri())
    assert not page.locator("#next").is_visible()
    page.get_by_role("link", name="Nights", exact=True).first.click()
    page.wait_for_load_state()
    assert page.url.endswith("index.html#nights")
    assert page.locator(".month a[href='2026-11-19/index.html']").is_visible()


def test_a_hostile_question_is_inert(visit: Visit, site: Path) -> None:
    """Markup in a question is shown as text: no dialog, no element, no request."""
    visit.page.goto((site / "2026-11-19/rows.html").as_uri() + "#row=q-2")
    row = visit.page.locator("[id='row=q-2']")
    assert "<script>alert(1)</script> </script> <!channel>" in row.inner_text()
    assert row.locator("script, img").count() == 0
    assert visit.complaints == []


def test_the_keyboard_reaches_the_content(visit: Visit, site: Path) -> None:
    """The first stop of the tab key skips to the content."""
    visit.page.goto((site / "index.html").as_uri())
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.className") == "skip"
    visit.page.keyboard.press("Enter")
    assert visit.page.evaluate("document.activeElement.id") == "main"


@options(color_scheme="dark")
def test_paper_is_white(visit: Visit, site: Path) -> None:
    """A chart drawn for a dark screen is drawn again for paper, and back."""
    visit.page.goto((site / "index.html").as_uri())
    visit.wait_for_charts()
    visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert visit.page.evaluate(STROKE, "plot-context_recall") == SERIES["light"]
    visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert visit.page.evaluate(STROKE, "plot-context_recall") == SERIES["dark"]
