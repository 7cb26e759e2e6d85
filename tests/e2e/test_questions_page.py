"""Search and filters over the questions of all nights: opened from a folder, in a real browser."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from ragmetrics.records import Score
from ragmetrics.storage import Files
from tests.fakes.browsing import Visit, options
from tests.fakes.nights import FIRST, HOSTILE, night, worst_row
from tests.fakes.page_writing import write_assets, write_night, write_questions

SCORES: Mapping[str, tuple[str, tuple[float, ...]]] = {
    "Fell?": ("billing", (1.0, 1.0, 0.0)),
    "Back?": ("api", (0.9, 0.1, 0.9)),
    "Steady?": ("api", (0.6, 0.6, 0.6)),
    HOSTILE: ("a=b&c", (0.8, 0.8, 0.8)),
}
LAST = FIRST + timedelta(days=2)


@pytest.fixture(scope="module")
def questions_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page of three nights, of which the last has a new build."""
    folder = tmp_path_factory.mktemp("site")
    files, nights = Files(str(folder)), [night(number) for number in range(3)]
    rows = {
        one.date: [
            worst_row(
                f"q-{at}",
                question,
                at,
                tags={"section": section},
                index_build="new" if number == 2 else "old",
                scores={"context_recall": Score(values[number])},
            )
            for at, (question, (section, values)) in enumerate(SCORES.items())
        ]
        for number, one in enumerate(nights)
    }
    write_assets(files)
    for number, one in enumerate(nights):
        write_night(files, one, nights[:number], rows[one.date])
    write_questions(files, nights, rows)
    return (folder / "questions.html").as_uri()


def told(visit: Visit) -> str:
    """What the page says it found, after the 120 ms for which it waits while somebody types."""
    visit.page.evaluate("new Promise((done) => setTimeout(done, 130))")
    return str(visit.page.locator("#told").inner_text())


def listed(visit: Visit) -> list[str]:
    """The questions in the list, in order, but for the hostile one."""
    names = visit.page.locator(".asked tbody th bdi:not(.tag)").all_inner_texts()
    return [name for name in names if name in SCORES]


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("#q=STEADY", ["Steady?"]),
        ("#segment=section%3Dapi", ["Back?", "Steady?"]),
        ("#state=fell", ["Fell?"]),
        ("#state=back&metric=context_recall", ["Back?"]),
        ("#metric=context_recall&max=0.7", ["Fell?", "Steady?"]),
        ("#metric=context_recall&max=0.5&from=2026-11-11&to=2026-11-11", ["Back?"]),
        ("#build=none", []),
        ("#from=2026-12-01", []),
        ("#segment=section%3Dapi&q=back", ["Back?"]),
    ],
)
def test_the_address_has_the_filter(
    visit: Visit, questions_page: str, address: str, found: list[str]
) -> None:
    """Opened from a message or a bookmark, it lists the same questions."""
    visit.page.goto(questions_page + address)
    assert listed(visit) == found
    assert f"{len(found)} of 4 questions." == told(visit)


def test_what_is_chosen_stands_in_the_address(visit: Visit, questions_page: str) -> None:
    """So that it can be saved and sent; to clear the form lists all again."""
    page = visit.page
    page.goto(questions_page)
    assert told(visit) == "All 4 questions."
    page.get_by_label("Segment").select_option("section=a=b&c")
    assert told(visit) == "1 of 4 questions."
    assert page.url.endswith("#segment=section%3Da%3Db%26c")
    page.reload()
    assert told(visit) == "1 of 4 questions."
    assert page.locator("#filters summary").inner_text() == "Filters (1 set)"
    page.get_by_role("button", name="Clear").click()
    assert told(visit) == "All 4 questions."


def test_each_question_has_its_scores_and_leads_to_its_rows(
    visit: Visit, questions_page: str
) -> None:
    """A chart, the nights with their scores, and the row of each."""
    page = visit.page
    page.goto(questions_page + "#q=fell")
    row = page.locator(".asked tbody tr")
    assert row.locator("svg.spark path").count() == 1
    assert row.locator("td").first.inner_text() == "0.00"
    row.locator("summary").click()
    nights = ["2026-11-12 0.00", "2026-11-11 1.00", "2026-11-10 1.00"]
    assert row.locator("li").all_inner_texts() == nights
    row.get_by_role("link", name="2026-11-11").click()
    page.wait_for_url("**/2026-11-11/rows.html#row=q-0")
    assert page.locator("#opened").is_visible()
    assert visit.complaints == []


def test_the_keyboard_alone_finds_a_question(visit: Visit, questions_page: str) -> None:
    """Tab, letters and Enter lead from the header to a row of a question."""
    page = visit.page
    page.goto(questions_page)
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "f-q":
            break
    page.keyboard.type("steady")
    assert told(visit) == "1 of 4 questions."
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.innerText") == "Steady?":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/2026-11-12/rows.html#row=q-2")


@options(java_script_enabled=False)
def test_without_scripts_the_questions_are_there(visit: Visit, questions_page: str) -> None:
    """With their charts, what fell first, and no form that would do nothing."""
    visit.page.goto(questions_page)
    assert listed(visit) == ["Fell?", "Back?", "Steady?"]
    assert visit.page.locator("svg.spark").count() == 4
    assert not visit.page.locator("#find").is_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out(browser: Any, questions_page: str, width: int) -> None:
    """Page and table are as wide as the window; on a phone the filters are closed."""
    context = browser.new_context(viewport={"width": width, "height": 844})
    visit = Visit(context.new_page())
    visit.page.goto(questions_page)
    assert visit.overflow() <= 0
    scroll = "box => box.scrollWidth - box.clientWidth"
    assert visit.page.locator(".scroll").evaluate(scroll) <= 0
    assert visit.page.locator(".fields").is_visible() == (width == 1280)
    context.close()
