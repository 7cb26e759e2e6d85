"""The page of a night in a real browser: choosing a tag, and the nights on which something is
missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.records import Segment, Source
from ragmetrics.storage import Files
from tests.fakes.browsing import Visit, options
from tests.fakes.nights import night, summary, worst_row
from tests.fakes.page_writing import write_assets, write_night, write_overview


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nights with tags, half scored, without data, without rows that a metric can be scored on; the
    last one is as the first, but keeps no row.
    """
    folder = tmp_path_factory.mktemp("site")
    files = Files(str(folder))
    write_assets(files)
    segments = [
        summary("context_recall", mean, segment=Segment(tag=tag, value=value))
        for tag, value, mean in (
            ("channel", "app", 0.70),
            ("section", "billing", 0.30),
            ("section", "api", 0.72),
        )
    ]
    half = summary("context_recall", 0.9, status={"scored": 90, "judge_failed": 110})
    empty = Source(logs="logs/dt=2026-11-12/", files=0, rows=0, problem="no log file at logs/")
    nights = [
        night(0, recall=0.7, segments=segments, settings={"dataset": "helpdesk"}),
        night(1, metrics=[half], problems=["context_recall, shard 1: connection lost"]),
        night(2, metrics=[], segments=[], findings=[], source=empty),
        night(3, metrics=[summary("context_recall", None), summary("mrr", 0.4)], findings=[]),
        night(4, recall=0.7, segments=segments),
    ]
    rows = [
        worst_row("q-1", "How is an invoice changed?", tags={"section": "billing"}),
        worst_row("q-2", "Who has a key?", position=1, tags={"section": "api"}),
    ]
    for i, manifest in enumerate(nights):
        write_night(files, manifest, nights[:i], rows if i == 0 else [])
    write_overview(files, nights)
    return folder


def shown(page: Any) -> list[str]:
    """The tags whose tables are seen."""
    return [one.get_attribute("id") for one in page.locator(".heat").all() if one.is_visible()]


def test_one_tag_is_shown_at_a_time(visit: Visit, site: Path) -> None:
    """First the one with the worst value; another by a click or a key; all of them, too."""
    page = visit.page
    page.goto((site / "2026-11-10/index.html").as_uri())
    assert shown(page) == ["tag-section"]
    page.get_by_role("button", name="channel").click()
    assert shown(page) == ["tag-channel"]
    assert page.get_by_role("button", name="channel").get_attribute("aria-pressed") == "true"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert shown(page) == ["tag-section", "tag-channel"]


def test_the_headline_leads_to_the_questions_of_the_segment(visit: Visit, site: Path) -> None:
    """A link from the alert to the segment that it names; the address can be sent to others."""
    page, questions = visit.page, visit.page.locator("#found tbody tr")
    page.goto((site / "2026-11-10/index.html").as_uri())
    page.get_by_role("link", name="section=billing").click()
    page.wait_for_url("**/2026-11-10/rows.html#metric=context_recall&tag=section%3Dbilling")
    questions.filter(has_text="How is an invoice changed?").wait_for()
    assert questions.count() == 1
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    questions.filter(has_text="How is an invoice changed?").wait_for()
    assert questions.count() == 1


def test_the_headline_chooses_the_tag(visit: Visit, site: Path) -> None:
    """Where the night keeps no row to lead to; the address can be sent to others."""
    page = visit.page
    page.goto((site / "2026-11-14/index.html").as_uri() + "#tag-channel")
    assert shown(page) == ["tag-channel"]
    page.get_by_role("link", name="section=billing").click()
    page.wait_for_url("**#tag-section")
    page.wait_for_function(
        "[...document.querySelectorAll('.heat')]"
        ".filter(one => one.offsetParent).map(one => one.id).join() === 'tag-section'"
    )


@options(java_script_enabled=False)
def test_without_scripts_all_tags_are_shown(visit: Visit, site: Path) -> None:
    """And there is no button that does nothing."""
    visit.page.goto((site / "2026-11-10/index.html").as_uri())
    assert shown(visit.page) == ["tag-section", "tag-channel"]
    assert visit.page.locator("button >> visible=true").count() == 0


def test_all_tags_are_printed(visit: Visit, site: Path) -> None:
    """Paper cannot be clicked."""
    visit.page.goto((site / "2026-11-10/index.html").as_uri())
    visit.page.emulate_media(media="print")
    assert shown(visit.page) == ["tag-section", "tag-channel"]


def test_settings_unfold(visit: Visit, site: Path) -> None:
    """They are there for whoever asks."""
    page = visit.page
    page.goto((site / "2026-11-10/index.html").as_uri())
    settings = page.locator("pre.settings")
    assert not settings.is_visible()
    page.get_by_text("Settings of this run").click()
    assert "dataset: helpdesk" in settings.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("day", ["2026-11-11", "2026-11-12", "2026-11-13"])
def test_a_night_with_gaps_is_whole(
    browser: Any, site: Path, day: str, width: int, scheme: str
) -> None:
    """A run that died half-way, a night without data, a metric without rows: each opens without
    a message, without an empty chart, folded or not, and fits its window."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    visit = Visit(context.new_page())
    visit.watch()
    visit.page.goto((site / f"{day}/index.html").as_uri())
    visit.wait_for_charts()
    assert visit.overflow() <= 0
    plots = visit.page.locator(".plot")
    assert plots.count() == (0 if day == "2026-11-12" else 1)
    for plot in plots.all():
        assert plot.locator(".chart path[fill]").count() > 0
    visit.page.locator("details.metric > summary").evaluate_all(
        "all => all.map(one => one.click())"
    )
    for plot in plots.all():
        plot.locator(":is(.points path, .js-line) >> visible=true").first.wait_for()
    assert visit.overflow() <= 0
    assert visit.complaints == []
    context.close()


def test_what_is_missing_stands_before_the_numbers(visit: Visit, site: Path) -> None:
    """Nobody reads the numbers of half a night for those of all of it."""
    page = visit.page
    page.goto((site / "2026-11-11/index.html").as_uri())
    missing = page.get_by_role("heading", name="What is missing").bounding_box()
    metrics = page.get_by_role("heading", name="Metrics").all()
    assert [one.get_attribute("id") for one in metrics] == ["metrics", "details"]
    assert all(missing["y"] < one.bounding_box()["y"] for one in metrics)
