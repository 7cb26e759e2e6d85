"""The demo, as `make demo` runs it: the planted regression is the only night that fires."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragmetrics import pipeline
from tests.fakes.browsing import Visit, options
from tests.fakes.command import Run
from tests.fakes.processes import ROOT

BAD = "2026-11-17"
"""The night by the damaged build."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The demo's store and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "flows.demo", "--dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=560)
    assert done.returncode == 0, done.stderr
    return folder / "store", done.stdout


def manifests(store: Path) -> list[dict[str, Any]]:
    """The nights' manifests, oldest first."""
    return [json.loads(path.read_text()) for path in sorted(store.glob("runs/*/*.json"))]


def told(manifest: dict[str, Any]) -> set[str]:
    """What people were told of a night."""
    return {finding["transition"] for finding in manifest["findings"] if finding["transition"]}


def test_only_the_damaged_build_fires(demo: tuple[Path, str]) -> None:
    """Of ten nights, the one by the damaged index build fires, and the next one resolves."""
    nights = {manifest["date"]: told(manifest) for manifest in manifests(demo[0])}
    assert len(nights) == 10
    assert {day: what for day, what in nights.items() if what} == {
        "2026-11-17": {"fired"},
        "2026-11-18": {"resolved"},
    }


def test_the_message_says_what_dropped_and_where(demo: tuple[Path, str]) -> None:
    """Metric, drop, n, interval, index build, segments and the worst questions are in it."""
    message = demo[1].split("Slack message of 2026-11-17")[1].split("Slack message of")[0]
    for part in (
        "Context recall fell",
        "Drop: 0.2",
        "80 questions",
        "[0.1",
        "build-2026-11-17",
        "section=payroll",
        "Worst questions",
        "not sent: SLACK_WEBHOOK_URL is not set",
    ):
        assert part in message


def test_the_message_says_what_happened_to_the_passages(demo: tuple[Path, str]) -> None:
    """The passages of three sections are gone from the index, with one example."""
    message = demo[1].split("Slack message of 2026-11-17")[1].split("Slack message of")[0]
    said = " ".join(message.split())
    assert "passages are no longer retrieved by any question: probably gone from the index" in said
    assert "from sections billing, integrations and payroll" in said
    assert "For example" in said


@options(viewport={"width": 1280, "height": 800})
def test_the_first_screen_says_what_happened_to_the_passages(
    demo: tuple[Path, str], visit: Visit
) -> None:
    """The sentence is above the fold of the night's page; the table and the evidence follow."""
    visit.page.goto((demo[0] / "dashboard" / "2026-11-17" / "index.html").as_uri())
    told = visit.page.locator(".hero .story dd p", has_text="probably gone from the index")
    box = told.bounding_box()
    assert box
    assert box["y"] + box["height"] < 800
    lost = visit.page.locator("section.lost-passages")
    lost.locator("summary").first.click()
    assert "section=payroll 8 of 8" in " ".join(lost.inner_text().split())
    assert lost.locator("table.passages a").count() > 20
    assert visit.overflow() <= 0
    assert not visit.complaints


ABOVE = """() => {
    const where = document.getElementById("tags").closest("section");
    const parts = [...document.getElementById("main").children];
    const above = parts.slice(0, parts.indexOf(where)).map((one) => one.innerText);
    return above.join(" ").trim().split(/\\s+/).length;
}"""


@options(viewport={"width": 1280, "height": 800})
def test_the_way_to_where_is_short(demo: tuple[Path, str], visit: Visit) -> None:
    """Half of the 602 words that stood above it when all was open, or fewer."""
    visit.page.goto((demo[0] / "dashboard" / "2026-11-17" / "index.html").as_uri())
    assert 60 < visit.page.evaluate(ABOVE) <= 301


def test_the_planted_regression_is_three_clicks_away(demo: tuple[Path, str], visit: Visit) -> None:
    """From the overview to the night, and from there to a row that fell, with its contexts."""
    page = visit.page
    page.goto((demo[0] / "dashboard" / "index.html").as_uri())
    page.locator(f".months a[href='{BAD}/index.html']").click()
    page.wait_for_url(f"**/{BAD}/index.html")
    assert "Context recall fell from 0.88 to 0.64." in page.locator("h1").inner_text()
    assert "2 alerts firing" in page.locator(".hero .sub").inner_text()
    assert "Context recall" in page.locator("table.fallen thead").first.inner_text()
    fell = page.locator("table.fallen tbody a").nth(1)
    question = fell.inner_text()
    fell.click()
    page.wait_for_url("**/rows.html#row=*")
    row = page.locator(":target")
    assert question in row.inner_text()
    assert row.locator(".contexts li").count() > 1
    assert row.locator(".contexts li").first.is_visible()
    assert visit.complaints == []


@options(java_script_enabled=False)
def test_the_same_way_leads_there_without_scripts(demo: tuple[Path, str], visit: Visit) -> None:
    """The row is on the page, and the address leads to it."""
    page = visit.page
    page.goto((demo[0] / "dashboard" / BAD / "index.html").as_uri())
    page.locator("table.fallen tbody a").first.click()
    page.wait_for_url("**/rows.html#row=*")
    assert page.locator(":target .contexts li").first.is_visible()


@options(java_script_enabled=False)
def test_charts_are_there_before_any_script(demo: tuple[Path, str], visit: Visit) -> None:
    """As bots, mail and print show the page."""
    visit.page.goto((demo[0] / "dashboard" / "index.html").as_uri())
    charts = visit.page.locator(".plot > svg.chart")
    assert charts.count() >= 6
    assert all(chart.bounding_box()["height"] > 50 for chart in charts.all())


def test_the_demo_ends_with_table_and_dashboard(demo: tuple[Path, str]) -> None:
    """It prints a line per night and the path of a dashboard that is there."""
    store, printed = demo
    assert all(f"2026-11-{day}" in printed for day in range(10, 20))
    assert str(store / "dashboard" / "index.html") in printed
    assert (store / "dashboard" / "index.html").is_file()


def test_the_command_demo_runs_without_anything(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its nights, of which the damaged one and the one before do here, an alert, a dashboard."""
    monkeypatch.setattr(pipeline, "NIGHTS", pipeline.NIGHTS[-4:-2])
    ended = run("demo", "--dir", tmp_path / "demo")
    assert ended.code == 0
    assert "fired" in ended.out
    page = Path(ended.out.rpartition("Dashboard: ")[2].strip())
    assert page.is_file()
    assert page.is_relative_to(tmp_path / "demo")
