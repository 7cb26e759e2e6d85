"""Search, filters, addresses and CSV of a night's rows: opened from a folder, in a real browser."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.dashboard.row_selection import SAMPLED, EarlierNight, KeptRow, SelectionReason
from ragmetrics.records import MovedContext, Score
from ragmetrics.storage import Files
from tests.fakes.browsing import Visit, options
from tests.fakes.nights import HOSTILE, as_worst, night, worst_row
from tests.fakes.page_writing import write_assets, write_night, write_overview

FORMULA = '=HYPERLINK("http://example.com";"x")'
FELL = SelectionReason("fell", "context_relevance", 0.2, 1.0)
BOTH = (
    SelectionReason("worst", "context_recall", 0.9),
    SelectionReason("fell", "context_relevance", 0.2, 0.5),
)
CITIES = ("New\u00a0York  Bay", "L" * 300)
THEN = EarlierNight(
    date(2026, 11, 9),
    "idx-1",
    {"context_recall": 0.9},
    (MovedContext(text="Invoices can be replaced.", id="kb-9", rank_a=1, rank_b=None),),
)


def kept_rows() -> list[KeptRow]:
    """Two worst rows, one of them hostile, one that fell, and a sample with a score of 0.9, whose
    last row is among the worst of one metric and fell by another.
    """
    special = [
        worst_row(
            "q-1", "How is an invoice changed?", tags={"section": "billing", "city": CITIES[0]}
        ),
        worst_row("a/b c&d?", HOSTILE, tags={"section": "api"}),
        worst_row("q-3", FORMULA, why=(FELL,), tags={"section": "api"}, earlier=(THEN,)),
        worst_row(
            "q-4",
            'Line\none, "two"',
            why=(SAMPLED,),
            tags={"city": CITIES[1]},
            retrieved_contexts=("Zebra.",),
        ),
    ]
    scores = {"context_recall": Score(0.9), "context_relevance": Score(0.2)}
    many = [
        worst_row(f"s-{i}", f"Question {i}?", why=BOTH if i == 99 else (SAMPLED,), scores=scores)
        for i in range(100)
    ]
    return [replace(one, place=(0, i)) for i, one in enumerate([*special, *many])]


@pytest.fixture(scope="module")
def rows_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page of such a night."""
    folder = tmp_path_factory.mktemp("site")
    files, rows = Files(str(folder)), kept_rows()
    manifest = night(worst=as_worst(*rows[:2]))
    write_assets(files)
    write_night(files, manifest, [], rows)
    write_overview(files, [manifest])
    return (folder / "2026-11-10" / "rows.html").as_uri()


def told(visit: Visit) -> str:
    """What the page says it found."""
    # While typing the page waits for 120 ms. Its timers end in order: this one is after that.
    visit.page.evaluate("new Promise((done) => setTimeout(done, 130))")
    return str(visit.page.locator("#told").inner_text())


def questions(visit: Visit) -> list[str]:
    """The questions in the list, in order."""
    return list(visit.page.locator("#found tbody th a").all_inner_texts())


def csv_of(visit: Visit, folder: Path) -> list[list[str]]:
    """The file that the button gives, as a spreadsheet reads it."""
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename == "helpdesk-2026-11-10-rows.csv"
    download.value.save_as(folder / "rows.csv")
    data = (folder / "rows.csv").read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") + data.count(b"Line\none")
    return list(csv.reader(data.decode("utf-8").splitlines(keepends=True)))


def test_text_is_searched_in_all_that_was_logged(visit: Visit, rows_page: str) -> None:
    """In questions, responses, references and contexts; every word, whatever its case."""
    visit.page.goto(rows_page)
    assert told(visit) == "All 104 kept questions."
    box = visit.page.get_by_label("Text")
    for words, count in (
        ("INVOICE changed", 103),
        ("zebra", 1),
        ("billing under", 104),
        ("s-42", 1),
    ):
        box.fill(words)
        assert told(visit).startswith("All" if count == 104 else f"{count} of 104"), words
    box.fill("replaced")  # by an earlier night alone, and "replaces" by the reference
    assert told(visit) == "0 of 104 kept questions."
    assert visit.complaints == []


def test_filters_combine_and_stand_in_the_address(visit: Visit, rows_page: str) -> None:
    """Metric, range, tag and kind narrow the list; the address opens the same list again."""
    visit.page.goto(rows_page)
    visit.page.get_by_label("Metric").select_option("context_recall")
    visit.page.get_by_label("to", exact=True).fill("0.5")
    assert told(visit) == "4 of 104 kept questions."
    visit.page.get_by_label("Tag").select_option("section=api")
    assert told(visit) == "2 of 104 kept questions."
    visit.page.get_by_label("Shown as").select_option("worst")
    assert told(visit) == "1 of 104 kept questions."
    address = visit.page.url
    assert address.endswith("#metric=context_recall&max=0.5&tag=section%3Dapi&kind=worst")
    visit.page.goto("about:blank")
    visit.page.goto(address)
    assert told(visit) == "1 of 104 kept questions."
    assert visit.page.get_by_label("Metric").input_value() == "context_recall"
    visit.page.get_by_role("button", name="Clear").click()
    assert told(visit) == "All 104 kept questions."
    assert visit.page.url.endswith("rows.html#")


def test_every_tag_that_is_offered_finds_its_rows(visit: Visit, rows_page: str) -> None:
    """However it is spaced, and however long; each list has the number of its rows beside it."""
    visit.page.goto(rows_page)
    field = visit.page.get_by_label("Tag")
    offered = field.locator("option").all_inner_texts()[1:]
    assert len(offered) == 4
    for number, words in enumerate(offered, 1):
        field.select_option(index=number)
        assert told(visit).startswith(words[words.rindex("(") + 1 : -1] + " of 104")


def test_a_choice_that_no_row_has_finds_nothing(visit: Visit, rows_page: str) -> None:
    """An address of another run of the night is not taken for one of all rows."""
    visit.page.goto(rows_page + "#tag=section%3Dgone")
    assert told(visit) == "0 of 104 kept questions."
    assert visit.page.get_by_label("Tag").input_value() == "section=gone"
    visit.page.goto(rows_page + "#kind=gone")
    assert told(visit) == "0 of 104 kept questions."


def test_a_score_and_the_one_before_are_of_one_metric(
    visit: Visit, rows_page: str, tmp_path: Path
) -> None:
    """And the list says of which, where none is chosen; the CSV has the code name of the metric
    that fell.
    """
    visit.page.goto(rows_page + "#q=Question+99")
    line = visit.page.locator("#found tbody tr")
    assert line.locator("td").last.inner_text() == "0.50 → 0.20\nContext relevance (graded)"
    visit.page.goto(rows_page + "#q=Question+99&metric=context_recall")
    assert told(visit)
    assert line.locator("td").last.inner_text() == "0.90"
    assert visit.page.locator("#measure").inner_text() == "Context recall"
    visit.page.goto(rows_page + "#q=Question+99")
    assert told(visit)
    head, found = csv_of(visit, tmp_path)
    saved = dict(zip(head, found, strict=True))
    assert (saved["fell_in"], saved["before"]) == ("context_relevance", "0.5")


def test_the_metric_that_the_reader_came_from_is_on_top(visit: Visit, rows_page: str) -> None:
    """Beside the question and first among the scores; without one, that in which it fell."""
    article = visit.page.locator("article")
    for metric, lines in (
        ("", ["Context relevance (graded)", "0.50 →\nto\n0.20"]),
        ("&metric=context_recall", ["Context recall", "0.90"]),
    ):
        visit.page.goto("about:blank")
        visit.page.goto(f"{rows_page}#row=s-99{metric}")
        assert article.locator(".score > *").all_inner_texts()[0] == lines[0]
        assert article.locator(".scores tbody th").first.inner_text() == lines[0]
        assert article.locator(".score .value").inner_text().split() == lines[1].split()
    assert visit.complaints == []


@pytest.mark.parametrize(("width", "is_open"), [(390, False), (1280, True)])
def test_filters_are_folded_on_a_telephone(
    browser: Any, rows_page: str, width: int, is_open: bool
) -> None:
    """The search is in reach; the filters open at a touch."""
    context = browser.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    page.goto(rows_page)
    assert page.get_by_label("Text").is_visible()
    assert page.get_by_label("Metric").is_visible() is is_open
    page.get_by_text("Filters", exact=True).click()
    assert page.get_by_label("Metric").is_visible() is not is_open
    context.close()


def test_it_opens_on_the_failing_metric(visit: Visit, tmp_path: Path) -> None:
    """The worst fallen first; an address with a choice stays as it is."""
    files, rows = Files(str(tmp_path)), kept_rows()
    fell = [SelectionReason("fell", "context_recall", 0.0, before) for before in (0.4, 0.8)]
    rows[:2] = [replace(row, why=(why,)) for row, why in zip(rows, fell, strict=False)]
    write_assets(files)
    write_night(files, night(recall=0.7, worst=as_worst(*rows[:2])), [], rows)
    address = (tmp_path / "2026-11-10" / "rows.html").as_uri()
    visit.page.goto(address)
    assert visit.page.get_by_label("Metric").input_value() == "context_recall"
    by_fall = [FORMULA, HOSTILE.replace("\x00", "␀"), rows[0].row.user_input]  # 0.9, 0.8, 0.4
    assert questions(visit)[:3] == by_fall
    visit.page.goto("about:blank")
    visit.page.goto(f"{address}#tag=section%3Dapi")
    assert visit.page.get_by_label("Metric").input_value() == ""


def test_rows_are_sorted(visit: Visit, rows_page: str) -> None:
    """By score in either direction, by fall, by question; fifty at a time."""
    visit.page.goto(rows_page + "#metric=context_recall&sort=best")
    assert questions(visit)[0] == "Question 0?"
    assert len(questions(visit)) == 50
    visit.page.get_by_role("button", name="Show 50 more").click()
    assert len(questions(visit)) == 100
    visit.page.get_by_label("Metric").select_option("context_relevance")
    visit.page.get_by_label("Order").select_option("")
    assert told(visit)
    assert questions(visit)[:2] == [FORMULA, "Question 99?"]
    visit.page.get_by_label("Metric").select_option("context_recall")
    visit.page.get_by_label("Order").select_option("worst")
    assert told(visit)
    assert "How is an invoice changed?" in questions(visit)[:4]


def test_a_row_has_an_address(visit: Visit, rows_page: str) -> None:
    """It opens the row in full; from there to the next one found, and back to the list."""
    visit.page.goto(rows_page + "#tag=section%3Dapi&row=q-3")
    article = visit.page.locator("article")
    assert article.count() == 1
    assert "1 left" in article.inner_text()
    assert visit.page.title().startswith("=HYPERLINK")
    visit.page.get_by_role("link", name="next question").click()
    assert "<script>alert(1)</script>" in article.inner_text()
    assert article.locator("script, img").count() == 0
    visit.page.get_by_role("link", name="2 questions found").click()
    assert told(visit) == "2 of 104 kept questions."
    assert visit.page.url.endswith("#tag=section%3Dapi")
    visit.page.go_back()
    assert article.is_visible()
    assert visit.complaints == []


def test_an_address_of_a_row_that_is_not_kept_says_so(visit: Visit, rows_page: str) -> None:
    """And shows the list; a choice that there is not is none."""
    visit.page.goto(rows_page + "#row=gone&metric=nope&min=x&sort=%E0%A4%A")
    assert "Question gone is not kept here" in told(visit)
    assert len(questions(visit)) == 50
    assert visit.complaints == []


def test_the_csv_is_what_is_shown(visit: Visit, rows_page: str, tmp_path: Path) -> None:
    """As many lines as rows found, with all scores; formulas are harmless, texts come whole."""
    visit.page.goto(rows_page + "#min=0.9")
    head, *lines = csv_of(visit, tmp_path)
    assert head[:5] == ["night", "id", "kept_as", "question", "context_recall"]
    assert len(lines) == 100
    visit.page.goto(rows_page + "#max=0.3&sort=question")
    visit.page.reload()
    found = [dict(zip(head, line, strict=True)) for line in csv_of(visit, tmp_path)[1:]]
    by_id = {one["id"]: one for one in found}
    assert by_id["q-3"]["question"] == f"'{FORMULA}"
    assert by_id["q-3"]["before"] == "1"
    assert by_id["q-4"]["question"] == 'Line\none, "two"'
    assert by_id["s-7"]["context_relevance"] == "0.2"
    assert visit.complaints == []


def test_the_keyboard_alone_reaches_a_row(visit: Visit, rows_page: str) -> None:
    """Type, go to the first row, open it, and Escape leads back to its line."""
    visit.page.goto(rows_page)
    visit.page.get_by_label("Text").focus()
    visit.page.keyboard.type("zebra")
    assert told(visit) == "1 of 104 kept questions."
    for _ in range(20):
        visit.page.keyboard.press("Tab")
        if visit.page.evaluate("document.activeElement.dataset.key") == "q-4":
            break
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_selector("article")
    assert visit.page.evaluate("document.activeElement.id") == "row=q-4"
    visit.page.keyboard.press("Escape")
    visit.page.wait_for_selector("#found tbody a")
    assert visit.page.evaluate("document.activeElement.dataset.key") == "q-4"
    assert visit.page.get_by_label("Text").input_value() == "zebra"


@options(java_script_enabled=False)
def test_without_scripts_the_worst_and_those_that_fell_are_in_full(
    visit: Visit, rows_page: str
) -> None:
    """No form that does nothing; the address of a row, and of a metric, is a place on the page."""
    visit.page.goto(rows_page + "#row=a%2Fb%20c%26d%3F")
    assert not visit.page.locator("#browser").is_visible()
    assert visit.page.locator("article").count() == 4
    assert visit.page.locator("article:target h2").inner_text().count("<script>") == 1
    fallen = visit.page.locator("article h2").first.inner_text()
    assert FORMULA in fallen


def test_a_lost_file_is_told(visit: Visit, rows_page: str) -> None:
    """Without its data the page is what it is without scripts."""
    visit.page.route("**/rows-1.js", lambda route: route.abort())
    visit.page.goto(rows_page)
    assert visit.page.locator("article").count() == 4
    assert not visit.page.locator("#browser").is_visible()


@pytest.mark.parametrize("address", ["", "#row=q-3", "#metric=context_recall"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out(browser: Any, rows_page: str, width: int, address: str) -> None:
    """List and row fit a telephone and a screen, and nothing complains."""
    context = browser.new_context(viewport={"width": width, "height": 900})
    visit = Visit(context.new_page())
    visit.watch()
    visit.page.goto(rows_page + address)
    visit.page.wait_for_timeout(100)
    assert visit.overflow() <= 0
    assert visit.complaints == []
    context.close()


@pytest.fixture
def odd_page(tmp_path: Path) -> str:
    """The address of the page of a night with one row, of strange texts."""
    question = "How?;=cmd|' /C calc'!A0\t@SUM(1)\n+1\n－1"
    row = worst_row("＝1", question, tags={"__proto__": "x", "constructor": "y"})
    files = Files(str(tmp_path / "site"))
    write_assets(files)
    write_night(files, night(worst=as_worst(row)), [], [row])
    return (tmp_path / "site" / "2026-11-10" / "rows.html").as_uri()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_no_cell_is_a_formula_however_cells_are_told_apart(
    visit: Visit, odd_page: str, tmp_path: Path, delimiter: str
) -> None:
    """A spreadsheet may end cells at semicolons or tabs; then lines within quotes begin cells."""
    visit.page.goto(odd_page)
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name="Download CSV").click()
    download.value.save_as(tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        cells = [cell for line in csv.reader(file, delimiter=delimiter) for cell in line]
    assert [cell for cell in cells if re.match(r"[=+\-@＝－\t\r\n]", cell)] == []
    assert any("'=cmd|" in cell for cell in cells)


def test_a_tag_may_have_any_name(visit: Visit, odd_page: str) -> None:
    """Also one that means something to a script."""
    for tag in ("__proto__=x", "constructor=y"):
        visit.page.goto(f"{odd_page}#tag={tag}")
        visit.page.reload()
        assert told(visit) == "All 1 kept question.", tag
        assert tag.replace("=", " ") in visit.page.locator("#found tbody").inner_text()
