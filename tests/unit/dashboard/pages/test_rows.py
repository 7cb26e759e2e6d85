"""The page of a night's rows and its data: what is said of a row, and how much of it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.dashboard.pages.rows import MOST_FILE_BYTES, write_rows
from ragmetrics.dashboard.row_selection import SAMPLED, EarlierNight, KeptRow, SelectionReason
from ragmetrics.records import MovedContext, Score, Status
from tests.fakes.nights import FIRST, HOSTILE, as_worst, night, worst_row
from tests.fakes.pages import Outline, Site, text


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty site."""
    return Site(tmp_path)


def data(site: Site) -> list[dict[str, Any]]:
    """The rows in all data files of a night, with their articles as HTML."""
    rows = []
    for path in sorted((site.folder / str(FIRST)).glob("rows-*.js")):
        script = path.read_text("utf-8")
        rows += json.loads(script[script.index("push(") + 5 : script.rindex(");")])["rows"]
    unpack = str.maketrans("\x82\x83\x84", "<>&")
    return [{**row, "html": row["html"].translate(unpack)} for row in rows]


def site_divs(site: Site) -> list[dict[str, str | None]]:
    """The blocks of the page of rows."""
    return Outline(site.html(f"{FIRST}/rows.html")).all("div")


def an_earlier_night(*contexts: MovedContext, day: int = 9, **change: Any) -> EarlierNight:
    """A night before the first, on which a question had these contexts."""
    values: dict[str, Any] = {"index_build": "idx-1", "values": {"context_recall": 0.9}}
    return EarlierNight(date(2026, 11, day), contexts=contexts, **{**values, **change})


STAYED = MovedContext(text="Seats can be added.", id="kb-2", rank_a=2, rank_b=2)
LEFT = MovedContext(text="Invoices cannot be changed.", id="kb-9", rank_a=1, rank_b=None)
CAME = MovedContext(text="Invoices are sent monthly.", id="kb-1", rank_a=None, rank_b=1)


class TestRows:
    def test_verdicts_lie_over_the_texts(self, site: Site) -> None:
        """Grades, needed sentences and supported claims stand beside the texts they judge."""
        page = site.rows(worst_row("q-1", "How?"))
        assert "grade 2 answers it" in text(page)
        assert "<mark>A sent invoice cannot be changed.</mark>" in page
        assert "✓ supported It cannot be changed." in text(page.replace("</b>", "</b> "))
        assert "✗ not supported Support replaces it." in text(page.replace("</b>", "</b> "))
        assert "unreadable verdict" in text(page)

    @pytest.mark.parametrize(
        "details",
        [
            {"context_relevancy": {"needed": [[7], []]}},
            {"context_relevancy": {"needed": [[0]]}},
            {"context_relevancy": {"needed": "all"}},
            {"context_relevancy": {"needed": [None, {}]}},
        ],
    )
    def test_verdicts_that_do_not_fit_are_left_out(
        self, site: Site, details: dict[str, Any]
    ) -> None:
        """Indices that do not fit the texts highlight nothing, and nothing fails."""
        assert "<mark>" not in site.rows(worst_row("q-1", "How?", details=details))

    @pytest.mark.parametrize("attributed", [[True], [1, "no"], "yes", None, [True, None]])
    def test_claims_without_verdicts_are_plain_text(self, site: Site, attributed: object) -> None:
        """A reference whose verdicts do not fit is shown as it is."""
        details = {"context_recall": {"attributed": attributed}}
        page = text(site.rows(worst_row("q-1", "How?", details=details)))
        assert "It cannot be changed. Support replaces it." in page

    def test_questions_that_a_response_answers(self, site: Site) -> None:
        """Generated questions are shown with how close they are to the one asked."""
        found = {"questions": ["Where?", "When?"], "cosines": [0.9, 0.2], "noncommittal": False}
        page = text(site.rows(worst_row("q-1", "How?", details={"response_relevancy": found})))
        assert "0.90Where?" in page

    def test_a_repeated_id_has_an_address_of_its_own(self, site: Site) -> None:
        """Where a log repeats an id, the row at the place that is worst is linked."""
        first, second = worst_row("q-1", "Not this one"), worst_row("q-1", "This one", position=1)
        second = replace(second, key="q-1~2")
        page = site.night(night(worst=as_worst(second)), [first, second])
        assert "rows.html#row=q-1~2" in [a["href"] for a in Outline(page).all("a")]
        assert [row["key"] for row in data(site)] == ["q-1", "q-1~2"]

    def test_every_judge_of_a_panel_is_heard(self, site: Site) -> None:
        """Value, repeats and refusal of each judge stand under the metric."""
        said = {
            "gpt": {"value": 0.5, "status": "scored", "repeats": [0.25, 0.75]},
            "qwen": {"value": None, "status": "unreadable", "reason": "no verdict"},
        }
        page = text(
            site.rows(worst_row("q-1", "How?", details={"context_recall": {"judges": said}}))
        )
        assert "gptrepeats: 0.25, 0.750.50" in page
        assert "qwenno verdict–" in page

    def test_other_metrics_tell_what_they_found(self, site: Site) -> None:
        """Entities, relevant ranks, statements with their reasons: each with its verdict."""
        found = {
            "context_entity_recall": {"found": ["Billing"], "missing": ["Support"]},
            "mrr": {"relevant_ranks": [2]},
            "faithfulness": {"statements": ["It is so."], "supported": [False], "reasons": ["No."]},
            "noise_sensitivity": {"statements": ["A.", "B."], "wrong": [1], "misled": [1]},
        }
        page = text(site.rows(worst_row("q-1", "How?", details=found)))
        for told in (
            "✓ foundBilling",
            "✗ missingSupport",
            "relevant to Reciprocal rank",
            "✗ not supportedIt is so.No.",
            "✓ correctA.",
            "✗ wrong, as a passage saysB.",
        ):
            assert told in page

    @pytest.mark.parametrize(
        ("support", "told"),
        [([2, 1], ["✓ vital, supportedA.", "✗ okay, partly supportedB."]), ([2], []), ([7, 0], [])],
    )
    def test_nuggets_have_their_importance_and_their_support(
        self, site: Site, support: list[int], told: list[str]
    ) -> None:
        """Verdicts that do not fit the nuggets are left out."""
        nuggets = (
            {"text": "A.", "importance": "vital"},
            {"text": "B.", "importance": "okay"},
        )
        found = {"nugget_recall": {"support": support}}
        page = text(site.rows(worst_row("q-1", "How?", details=found, nuggets=nuggets)))
        assert all(words in page for words in told)
        assert ("okay, partly supported" in page) == bool(told)

    def test_why_a_row_is_kept(self, site: Site) -> None:
        """A row says in which metrics its question fell, how far by the first; else in which it is
        among the worst.
        """
        worst = SelectionReason("worst", "mrr", 0.1)
        fell = SelectionReason("fell", "context_relevance", 0.5, 1.0)
        page = text(site.rows(worst_row("q-1", "How?", why=(worst, fell))))
        assert "Context relevance (graded)1.00 →to 0.50 Question: How?" in page
        assert "↓ fell in Context relevance (graded)" in page
        assert "worst in" not in page
        page = text(site.rows(worst_row("q-1", "How?", why=(worst,))))
        assert "▼ among the worst in Reciprocal rank" in page

    def test_probabilities_stand_beside_verdicts(self, site: Site) -> None:
        """Those of a decision model's grades, needed sentences, ranks and claims; a probability is
        that of the verdict that is shown.
        """
        found = {
            "context_recall": {"attributed": [True, False], "probabilities": [0.97, 0.2]},
            "context_relevance": {
                "grades": [2, 0],
                "probabilities": [[0.1, 0.1, 0.8], [0.7, 0.2, 0.1]],
            },
            "context_relevancy": {"needed": [[1], []]},
            "context_relevancy_chunks": {"probabilities": [0.9, 0.3]},
            "mrr": {"relevant_ranks": [1], "probabilities": [0.6, 0.1]},
        }
        page = text(site.rows(worst_row("q-1", "How?", details=found)))
        for told in (
            "✓ supported (97%)",
            "✗ not supported (80%)",
            "grade 2 answers it (80%)",
            "grade 0 of no use (70%)",
            "1 needed sentence (90%)",
            "no needed sentence (70%)",
            "relevant to Reciprocal rank (60%)",
        ):
            assert told in page

    @pytest.mark.parametrize("odd", ["yes", [1], [2, -1], [None, "x"], [[], {}], {}])
    def test_odd_probabilities_are_left_out(self, site: Site, odd: object) -> None:
        """The verdicts stay."""
        details = {"context_recall": {"attributed": [True, False], "probabilities": odd}}
        details["context_relevance"] = {"grades": [2, 0], "probabilities": odd}
        page = text(site.rows(worst_row("q-1", "How?", details=details)))
        assert "✓ supported" in page
        assert "grade 2 answers it" in page
        assert "%)" not in page

    def test_ids_and_times_are_folded(self, site: Site) -> None:
        """No line of metadata stands above the texts."""
        page = site.rows(worst_row("q-1", "How?", index_build="idx-2"))
        before, folded = page.split("Id, index build and time")
        assert "<bdi>q-1</bdi>" not in before[before.index("<article") :]
        assert "q-1" in folded
        assert "idx-2" in folded


class TestEarlierNight:
    def test_what_left_and_came_is_shown(self, site: Site) -> None:
        """Ranks of then and now, the text of what is gone, and the scores of that night."""
        page = text(
            site.rows(worst_row("q-1", "How?", earlier=(an_earlier_night(LEFT, CAME, STAYED),)))
        )
        assert "✗ not retrieved kb-9 was rank 1 on 9 Nov" in page
        assert "Invoices cannot be changed." in page
        assert "9 Nov: 1 left, 1 came" in page
        assert "− left rank 1 kb-9" in page
        assert "+ came at rank 1 kb-1" in page
        assert "+ came since 9 Nov" in page
        assert "not logged; before idx-1" in page
        assert "Context recall9 Nov 0.900.90 →to 0.00" in page

    def test_the_history_is_a_small_line_and_words(self, site: Site) -> None:
        """Of all nights that asked the question, with and without their contexts; a metric with
        one value has none.
        """
        then = tuple(an_earlier_night(STAYED, day=day) for day in (9, 8))
        older = (an_earlier_night(day=3, values={"context_recall": None}),)
        page = site.rows(replace(worst_row("q-1", "How?", earlier=then), older=older))
        assert "Scores since 3 Nov" in text(page)
        assert page.count('<svg class="spark"') == 1
        assert 'title="8 Nov 0.90, 9 Nov 0.90"' in page

    def test_nights_alike_are_told_once(self, site: Site) -> None:
        """What three nights retrieved alike is not said three times."""
        nights = tuple(an_earlier_night(LEFT, CAME, day=day) for day in (9, 8, 7))
        page = text(site.rows(worst_row("q-1", "How?", earlier=nights)))
        assert "9 Nov, 8 Nov, 7 Nov: 1 left, 1 came" in page
        assert page.count("Invoices cannot be changed.") == 1

    def test_no_change_is_said(self, site: Site) -> None:
        """Where nothing changed the fault is not in what was retrieved, which is worth a line."""
        page = text(site.rows(worst_row("q-1", "How?", earlier=(an_earlier_night(STAYED),))))
        assert "9 Nov: the same passages in the same order" in page


class TestPage:
    def test_a_row_worst_by_several_metrics_stands_once(self, site: Site) -> None:
        """In full, with both metrics beside it."""
        row = worst_row("q-1", "How?")
        (recall,) = as_worst(row)
        relevance = recall.model_copy(update={"metric": "context_relevance", "value": 0.5})
        site.night(night(worst=[recall, relevance]), [row])
        page = Outline(site.html(f"{FIRST}/rows.html"))
        assert [a["id"] for a in page.all("article")] == ["row=q-1"]

    def test_rows_that_fell_come_before_the_worst(self, site: Site) -> None:
        """Furthest first: the night's page leads to them, with scripts or without."""
        worst = worst_row("q-1", "Worst?")
        little, far = (
            worst_row(
                f"q-{i}", "Fell?", position=i, why=(SelectionReason("fell", "mrr", 0.5, before),)
            )
            for i, before in ((2, 0.6), (3, 1.0))
        )
        site.night(night(worst=as_worst(worst)), [worst, little, far])
        page = site.html(f"{FIRST}/rows.html")
        rows = [one["id"] for one in Outline(page).all("article")]
        assert rows == ["row=q-3", "row=q-2", "row=q-1"]

    def test_scripts_open_it_on_the_failing_metric(self, site: Site) -> None:
        """A night that is fine has none."""
        row = worst_row("q-1", "How?")
        for recall, metric in ((0.7, "context_recall"), (0.93, "")):
            site.night(night(recall=recall), [row])
            (browser,) = (one for one in site_divs(site) if one.get("id") == "browser")
            assert browser["data-fell"] == metric

    def test_it_says_how_many_of_how_many(self, site: Site) -> None:
        """How many rows can be searched, and where all of them are."""
        site.night(night(), [worst_row("q-1", "How?", why=(SAMPLED,))])
        page = text(site.html(f"{FIRST}/rows.html"))
        assert "1 of 200 logged questions: the worst, the most fallen and a sample" in page
        assert "rows/dt=2026-11-10/run=run-0" in page

    def test_rows_without_scores_have_a_page(self, site: Site) -> None:
        """Where nothing was scored, some of the rows are there to see why."""
        failed = {"context_recall": Score(None, "429", status=Status.JUDGE_FAILED)}
        site.night(night(), [worst_row("q-1", "How?", why=(SAMPLED,), scores=failed)])
        page = text(site.html(f"{FIRST}/rows.html"))
        assert "No question has a score." in page
        assert "judge failed" in page

    def test_a_night_without_rows_has_no_page(self, site: Site) -> None:
        """Nor does its own page lead to one."""
        assert write_rows(site.files, night(), []) is None
        assert "rows.html" not in site.night(night())

    def test_a_rerun_leaves_no_row_behind(self, site: Site) -> None:
        """What another run of the night had more of is removed."""
        contexts = ("word " * 4_000,) * 10
        rows = [worst_row(f"q-{i}", "?", i, retrieved_contexts=contexts) for i in range(150)]
        folder = site.folder / str(FIRST)
        left = []
        for kept in (rows, rows[:1], []):
            site.night(night(), kept)
            left.append([path.name for path in sorted(folder.glob("rows*"))])
        assert len(left[0]) > 2
        assert left[1:] == [["rows-1.js", "rows.html"], []]

    def test_it_stays_below_300_kb(self, site: Site) -> None:
        """However many metrics have worst rows, and however large those are."""
        contexts = ('"<&\u4e00' * 500,) * 20
        rows = [
            worst_row(f"q-{i}", HOSTILE * 9, position=i, retrieved_contexts=contexts)
            for i in range(60)
        ]
        worst = [
            row.model_copy(update={"metric": f"metric_{n % 19}"})
            for n, row in enumerate(as_worst(*rows) * 3)
        ]
        site.night(night(worst=worst), rows)
        page = site.html(f"{FIRST}/rows.html")
        assert len(page.encode()) < 300_000
        assert "more questions that fell or are among the worst: no room here" in page


class TestData:
    def test_what_is_cut_says_so(self, site: Site) -> None:
        """A question in the list and in the CSV is not the whole one, nor is a long id."""
        site.rows(worst_row("q" * 300, "How? " * 400))
        (row,) = data(site)
        assert (len(row["question"]), row["question"][-1]) == (1_000, "…")
        assert (len(row["id"]), row["id"][-1]) == (200, "…")

    def test_the_article_is_that_of_the_page(self, site: Site) -> None:
        """A row looks alike with and without scripts: it is rendered once."""
        page = site.rows(worst_row("q-1", HOSTILE))
        (row,) = data(site)
        assert row["html"] in page

    def test_files_are_bounded(self, site: Site) -> None:
        """At most three files of a megabyte; the page counts the rows that found room."""
        contexts = ("word " * 4_000,) * 10
        rows = [
            worst_row(f"q-{i}", "How?", position=i, retrieved_contexts=contexts) for i in range(400)
        ]
        site.night(night(worst=as_worst(*rows[:10])), rows)
        sizes = [path.stat().st_size for path in (site.folder / str(FIRST)).glob("rows-*.js")]
        assert len(sizes) == 3
        assert max(sizes) < MOST_FILE_BYTES + 100
        kept = len(data(site))
        assert 100 < kept < 400
        assert f"{kept} of 200 logged questions: the worst" in text(site.html(f"{FIRST}/rows.html"))

    @pytest.mark.parametrize("place", ["user_input", "id", "index_build", "tags", "language"])
    def test_hostile_fields_are_inert(self, site: Site, place: str) -> None:
        """No sign of a log means anything to HTML or to JavaScript in a data file."""
        value: Any = f"{HOSTILE}\u2028\u2029\x82\ud800"
        change: dict[str, Any] = {place: {value: value} if place == "tags" else value}
        row: KeptRow = worst_row("q-1", "How?", **change)
        site.night(night(worst=as_worst(row)), [row])
        script = (site.folder / str(FIRST) / "rows-1.js").read_text("utf-8")
        assert not set("<>&\u2028\u2029\x00") & set(script)
        (found,) = data(site)
        assert not {"script", "img"} & set(Outline(found["html"]).tags)
