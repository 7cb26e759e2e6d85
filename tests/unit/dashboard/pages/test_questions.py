"""The page of all questions: what it says and links to, and how large it may become."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.dashboard import Shown
from ragmetrics.dashboard.pages.questions import MOST_BYTES, MOST_FILE_BYTES, questions
from ragmetrics.dashboard.question_history import asked_on, read_history
from ragmetrics.dashboard.row_selection import KeptRow
from ragmetrics.records import Manifest, Score, Source
from ragmetrics.storage import Files
from tests.fakes.nights import FIRST, HOSTILE, night, summary, worst_row
from tests.fakes.page_writing import write_questions
from tests.fakes.pages import Outline, Site, text

ASKED = "How is an invoice changed?"
LATER = FIRST + timedelta(days=1)
Rows = Mapping[date, Sequence[KeptRow]]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty site."""
    return Site(tmp_path)


def page(site: Site, nights: Sequence[Manifest], rows: Rows) -> str:
    """The page of these nights."""
    return site.html(write_questions(site.files, nights, rows))


def scored(name: str, value: float, question: str = ASKED, **change: Any) -> KeptRow:
    """A row with a score by recall."""
    return worst_row(name, question, scores={"context_recall": Score(value)}, **change)


def data(site: Site) -> dict[str, Any]:
    """The content of the script."""
    script = (site.folder / "questions.js").read_text("utf-8")
    content: dict[str, Any] = json.loads(script.partition(" = ")[2].rstrip(";\n"))
    return content


def test_a_question_is_listed_with_its_row_of_each_night(site: Site) -> None:
    """The newest one behind its text, and each with its score."""
    rows = {FIRST: [scored("q-1", 1.0)], LATER: [scored("q/2", 0.0)]}
    outline = Outline(page(site, [night(0), night(1)], rows))
    links = [link["href"] for link in outline.all("a") if "rows.html" in str(link.get("href"))]
    newest, first = "2026-11-11/rows.html#row=q%2F2", "2026-11-10/rows.html#row=q-1"
    assert links == [newest, newest, first]
    assert "2026-11-11 0.00" in outline.text
    assert "2026-11-10 1.00" in outline.text
    assert len(outline.all("svg"))


def test_all_questions_of_a_small_store_are_shown(site: Site) -> None:
    """The page says so."""
    assert "All 1 question of the night 2026-11-10." in text(
        page(site, [night()], {FIRST: [scored("q-1", 1.0)]})
    )


def test_of_a_large_night_it_says_what_is_shown(site: Site) -> None:
    """Its rows are not all kept."""
    large = night(source=Source(logs="logs/", files=1, rows=20_000))
    said = text(page(site, [large], {FIRST: [scored("q-1", 1.0)]}))
    assert "1 question, those that fell most, the worst and a sample, of the night" in said


def test_hostile_texts_are_texts(site: Site) -> None:
    """In the page and in its data."""
    shown = page(site, [night()], {FIRST: [scored("q-1", 1.0, HOSTILE, tags={"<b>": "<i>"})]})
    assert not {"img", "i"} & set(Outline(shown).tags)
    assert all("alert" not in str(one) for one in Outline(shown).all("script"))
    assert "<" not in (site.folder / "questions.js").read_text("utf-8")


def test_segments_builds_and_metrics_are_offered(site: Site) -> None:
    """A tag with one value is no choice."""
    rows = [
        scored(str(n), 1.0, f"{n}?", tags={"section": s, "app": "web"}, index_build=f"idx-{n}")
        for n, s in enumerate(("billing", "api"))
    ]
    options = [
        one.get("value") for one in Outline(page(site, [night()], {FIRST: rows})).all("option")
    ]
    assert {"section=billing", "section=api", "idx-0", "idx-1", "context_recall"} <= set(options)
    assert "app=web" not in options


def test_a_question_leads_to_its_trace(site: Site) -> None:
    """In the tracing tool that the settings name; the next night reads the link."""
    address = "https://traces.example/t-1"
    traced = replace(scored("q-1", 1.0), trace=address)
    for rows in ({FIRST: [traced]}, {FIRST: []}):
        links = [link["href"] for link in Outline(page(site, [night()], rows)).all("a")]
        assert (address in links) == bool(rows[FIRST])
    page(site, [night()], {FIRST: [traced]})
    assert read_history(site.files).questions[traced.row.question_key].trace == address


def test_the_search_knows_states_and_usual_scores(site: Site) -> None:
    """The page computes them once."""
    rows = {FIRST: [scored("q-1", 1.0)], LATER: [scored("q-1", 0.0)]}
    page(site, [night(0), night(1)], rows)
    (question,) = data(site)["questions"]
    recall = data(site)["metrics"].index("context_recall")
    assert question["lead"] == recall
    assert (question["usual"][recall], question["state"][recall]) == (1.0, "fell")


def test_the_night_before_is_not_read_again(site: Site) -> None:
    """It left its questions in the site; of tonight's, the caller has them."""
    page(site, [night(0)], {FIRST: [scored("q-1", 1.0)]})
    asked = {LATER: asked_on(night(1), [scored("q-1", 0.0)])}
    nowhere = Files(str(site.folder / "nowhere"))
    content = questions.render(Shown(nowhere, site.files, [night(0), night(1)], asked=asked))
    assert content is not None
    assert "2 nights" in text(content.decode())


def test_a_night_that_nobody_left_is_read(site: Site) -> None:
    """If its rows are gone, it has no question."""
    content = questions.render(Shown(site.files, site.files, [night(0), night(1)]))
    assert content is not None
    assert "No question is kept yet." in text(content.decode())
    assert data(site)["nights"] == [[str(FIRST), "run-0"], [str(LATER), "run-1"]]


def test_a_site_without_nights_has_the_page(site: Site) -> None:
    """The header of every page leads to it."""
    content = questions.render(Shown(site.files, site.files, []))
    assert content is not None
    assert "No question is kept yet." in text(content.decode())


def test_a_redacted_site_shows_no_text_of_an_earlier_night(site: Site) -> None:
    """Neither on the page nor in its data, though that night ran without the setting."""
    page(site, [night(0)], {FIRST: [scored("q-1", 1.0)]})
    nights = [night(0), night(1, settings={"redact": True})]
    shown = page(site, nights, {})
    assert "invoice" not in shown + (site.folder / "questions.js").read_text("utf-8")
    assert "[" in shown


def test_a_large_store_has_a_small_page(site: Site) -> None:
    """With 45 metrics, 30 segments, 30 nights and 500 long questions."""
    names = [f"metric_{number}" for number in range(45)]
    nights = [night(number, metrics=[summary(name, 0.9) for name in names]) for number in range(30)]
    scores = {name: Score(0.123456) for name in names}
    kept = [
        worst_row(f"row-{n}", f"{n} {'Ж' * 290}", scores=scores, tags={"section": f"s-{n % 30}"})
        for n in range(500)
    ]
    shown = page(site, nights, {one.date: kept for one in nights})
    assert len(shown.encode()) <= MOST_BYTES
    assert (site.folder / "questions.js").stat().st_size <= MOST_FILE_BYTES * 1.01
    assert len(data(site)["questions"]) >= 50
    assert f"{len(data(site)['questions'])} questions, those that fell most" in text(shown)
