"""The page of a comparison: from the records to what a reader sees."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragmetrics.dashboard import compare_path, redacted, write_comparison
from ragmetrics.dashboard.compare_view import MOST_ROWS, compare_view
from ragmetrics.records import Comparison, MetricChange, Segment
from ragmetrics.storage import Files
from tests.fakes.comparisons import change, comparison, moved_row, one_sided
from tests.fakes.nights import HOSTILE
from tests.fakes.pages import Outline, text


@pytest.fixture
def site(tmp_path: Path) -> Files:
    """An empty site."""
    return Files(str(tmp_path / "site"))


def page(site: Files, found: Comparison) -> str:
    """The page of a comparison."""
    return site.read(write_comparison(site, "compare/a--b.html", found)).decode()


def test_what_surely_fell_is_said_first(site: Files) -> None:
    """In the first lines, by how much and where; then every metric, the likeliest loss first."""
    read = text(page(site, comparison()))
    assert "1 of 3 metrics is significantly worse, 1 better." in read
    assert "Context recall fell from 0.90 to 0.70 over the same 80 questions." in read
    assert "section=billing (0.90 → 0.50)." in read
    names = [line.change.metric for line in compare_view(comparison()).lines]
    assert names == ["context_recall", "context_precision", "context_relevance", "faithfulness"]


def test_every_line_has_a_word_for_what_it_says() -> None:
    """Colour is not the only sign: worse, better, neither, not compared and why."""
    lines = {line.change.metric: line for line in compare_view(comparison()).lines}
    assert {name: one.word for name, one in lines.items()} == {
        "context_recall": "worse",
        "context_relevance": "better",
        "context_precision": "not significant",
        "faithfulness": "not compared",
    }
    assert not lines["faithfulness"].bar


@pytest.mark.parametrize(
    ("metrics", "segments", "state", "told"),
    [
        ([change()], [], "firing", "The metric is significantly worse."),
        ([change(by=-0.01)], [], "ok", "The metric is not significantly worse."),
        ([change(by=0.2)], [], "ok", "The metric is not significantly worse, 1 better."),
        (
            [MetricChange(metric="m", reason="other judges")],
            [],
            "no_data",
            "Nothing can be compared.",
        ),
        (
            [change(by=-0.01)],
            [change(segment=Segment(tag="section", value="api"))],
            "fell",
            "The metric is not significantly worse over all rows, but 1 segment fell.",
        ),
    ],
)
def test_the_verdict_is_one_sentence(
    metrics: list[MetricChange], segments: list[MetricChange], state: str, told: str
) -> None:
    """With a state of its own where only a part of the rows got worse."""
    view = compare_view(comparison(metrics=metrics, segments=segments))
    assert (view.state, view.story.headline) == (state, told)


def test_where_lower_is_better_a_rise_is_the_loss() -> None:
    """And a fall is better."""
    rise = change("noise_sensitivity", 0.2, higher_is_better=False, p_adjusted=0.001, p_value=0.001)
    fall = change("noise_sensitivity", -0.2, higher_is_better=False, p_adjusted=1.0, p_value=0.9)
    words = [compare_view(comparison(metrics=[one])).lines[0].word for one in (rise, fall)]
    assert words == ["worse", "better"]


def test_numbers_are_as_exact_as_their_interval() -> None:
    """With a sign; what rounds to nothing has none."""
    wide, narrow, none = (
        compare_view(comparison(metrics=[change(**numbers)])).lines[0]
        for numbers in (
            {"by": -0.2},
            {"by": 0.0123, "low": 0.001, "high": 0.0236},
            {"by": 0.0001, "low": -0.0312, "high": 0.0314},
        )
    )
    assert (wide.difference, wide.ends) == ("−0.20", "[−0.26, −0.14]")
    assert (narrow.difference, narrow.ends) == ("+0.012", "[+0.001, +0.024]")
    assert (none.difference, none.ends) == ("0.000", "[−0.031, +0.031]")


def test_bars_share_an_axis_with_0_on_it() -> None:
    """Left of it is less; one that few questions make very wide is cut, and hides no other."""
    wide = change("m", -0.1, low=-3.0, high=2.8, p_value=0.4, p_adjusted=0.6)
    lines = compare_view(comparison(metrics=[change(), change("n", 0.1), wide])).lines
    bars = {line.change.metric: ends_of(line.bar) for line in lines}
    zero, low, high, point = bars["context_recall"]
    assert low < point < high < zero == bars["n"][0] < bars["n"][1]
    assert high - low > 12
    assert bars["m"][1:3] == [14, 226]
    axis = re.findall(r">([−+0-9.]+)</text>", compare_view(comparison()).axis)
    assert axis == ["−0.2", "−0.1", "0", "+0.1"]


def ends_of(bar: str) -> list[float]:
    """Where 0, both ends of an interval and its point are."""
    found = re.findall(r'd="M(\d+) \d+(?:H(\d+))?', bar)
    return [float(place) for places in found for place in places if place]


def test_questions_show_what_was_retrieved_for_them(site: Files) -> None:
    """Which contexts left, came, have another rank or another text; only metrics that moved."""
    read = text(page(site, comparison()))
    for told in (
        "1 passage left, 1 came",
        "− left rank 1 kb-1",
        "+ came rank 1 kb-7",
        "↕ up from 3 to 2 kb-2",
        "≠ down from 2 to 3, with another text kb-3",
        "= stayed rank 4 kb-4",
        "Context recall1.000▼worse 0.000",
        "Context relevance (graded)0.500▲better 0.750",
    ):
        assert told in read, told
    row = compare_view(comparison()).rows[0]
    assert [one.metric for one in row.moved] == ["context_recall", "context_relevance"]


def test_questions_of_one_side_are_told(site: Files) -> None:
    """How many, how they scored, and the worst; or that there are none."""
    read = text(page(site, comparison()))
    assert "Only before3 Their means: Context recall 0.500" in read
    assert "Where is my bill?" in read
    assert "Only after0 Every question after was also asked before." in read
    unscored = comparison(lost=one_sided(2, means={}, shown=[]))
    assert "None of them was scored." in text(page(site, unscored))


def test_a_page_is_bounded_and_says_so(site: Files) -> None:
    """However many segments, questions and long texts there are."""
    segments = [
        change(by=-0.01, segment=Segment(tag=f"t{tag}", value=f"{n}<&>" * 40))
        for tag in range(12)
        for n in range(60)
    ]
    rows = [moved_row(n, "<&>'\"" * 100) for n in range(60)]
    lone = one_sided(9, "<&>" * 900)
    found = comparison(segments=segments, rows=rows, lost=lone, gained=lone)
    written = page(site, found)
    view = compare_view(found)
    assert len(written.encode()) < 300_000
    assert {len(tag.lines) + tag.more for tag in view.tags} == {60}
    assert {len(tag.lines) for tag in view.tags} == {12}
    assert len(view.rows) <= MOST_ROWS
    assert f"{60 - len(view.rows)} more questions not shown." in text(written)


def test_of_a_tag_with_many_values_those_that_got_worse_stand_open(site: Files) -> None:
    """And at least five; the rest folds away, and stands on the page all the same."""
    by = [-0.4] * 7 + [-0.01] * 9
    segments = [
        change(by=drop, segment=Segment(tag="section", value=f"s-{n}")) for n, drop in enumerate(by)
    ]
    (worse,) = compare_view(comparison(segments=segments)).tags
    (calm,) = compare_view(comparison(segments=segments[7:])).tags
    assert [len(worse.first), len(worse.rest)] == [7, 9]
    assert [len(calm.first), len(calm.rest)] == [5, 4]
    read = text(page(site, comparison(segments=segments)))
    assert "9 more lines by section, none significantly worse" in read
    assert "s-15" in read


def test_a_tag_without_a_value_on_both_sides_is_no_table(site: Files) -> None:
    """Index builds mostly are such a tag: one line says so, and why."""
    builds = [
        MetricChange(metric=metric, reason=why, segment=Segment(tag="index_build", value=value))
        for value, why in (("b-1", "no row was scored after"), ("b-2", "no row was scored before"))
        for metric in ("context_recall", "context_precision")
    ]
    read = text(page(site, comparison(segments=builds)))
    assert (
        "By index_build, nothing can be compared. b-1: no row was scored after. "
        "b-2: no row was scored before." in read
    )


def test_hostile_text_stays_text(site: Files) -> None:
    """No element of the page comes from a log."""
    hostile = page(site, comparison(HOSTILE))
    assert Outline(hostile).tags == Outline(page(site, comparison("x"))).tags
    assert "{{ 7 * 7 }}" in hostile


def test_redacted_comparisons_have_no_word_of_a_log(site: Files) -> None:
    """Questions and contexts are hashes; ids, tags and scores stay."""
    read = text(page(site, redacted(comparison())))
    assert "section=billing" in read
    assert "kb-1" in read
    for word in ("Invoices", "invoice", "Seats", "bill?", "Mondays"):
        assert word not in read, word


@pytest.mark.parametrize(
    ("sides", "path"),
    [
        (("2026-11-18", "2026-11-19"), "compare/2026-11-18--2026-11-19.html"),
        (("1f2e3d4c5b", "b.jsonl"), "compare/1f2e3d4c5b--b.jsonl.html"),
    ],
)
def test_plain_names_are_the_pages_name(sides: tuple[str, str], path: str) -> None:
    """So that a link can be guessed."""
    assert compare_path(*sides) == path


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "build:42", "a b", "", "..", "x" * 400, "ü/🙂"]
)
def test_any_name_is_safe_in_a_path(name: str) -> None:
    """It leads nowhere else, is short, and no two names meet."""
    path = compare_path(name, "b")
    assert path.startswith("compare/")
    assert path.count("/") == 1
    assert ".." not in path
    assert len(path) < 120
    assert path.isascii()
    assert path != compare_path(f"{name}!", "b")


def test_the_page_links_home_where_there_is_a_home(site: Files) -> None:
    """A folder of its own has none; style and glossary come with it."""
    assert 'href="../index.html"' not in page(site, comparison())
    assert site.exists("glossary.html")
    assert [one.path for one in site.below("assets") if "plotly" in one.path] == []
    site.write("index.html", b"home")
    assert 'href="../index.html"' in page(site, comparison())
    assert 'href="compare/a--b.html"' in site.read("comparisons.html").decode()
