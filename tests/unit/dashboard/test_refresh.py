"""The dashboard as files: what its pages say, and what hostile logs cannot make them say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.dashboard.cards import MOST_DRAWN
from ragmetrics.dashboard.formatting import (
    LONGEST,
    TextBudget,
    clean,
    interval,
    number,
    signed,
    spans,
)
from ragmetrics.dashboard.night_status import find_night_status
from ragmetrics.dashboard.pages.comparisons import comparisons, comparisons_page
from ragmetrics.dashboard.summaries import summary_markdown
from ragmetrics.dashboard.trend_figure import trend_figure
from ragmetrics.dashboard.trends import change, trends
from ragmetrics.people import History
from ragmetrics.records import BrokenFile, JudgeInfo, Segment, Source, WorstRow
from ragmetrics.text import share
from tests.fakes.nights import (
    FIRST,
    HOSTILE,
    METRICS,
    finding,
    night,
    summary,
    ten_nights,
    worst_row,
    worst_rows,
)
from tests.fakes.page_writing import (
    write_assets,
    write_builds,
    write_calibrations,
    write_night,
    write_questions,
)
from tests.fakes.pages import Outline, Site, text


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty site."""
    return Site(tmp_path)


class TestState:
    def test_a_night_within_its_limits_is_fine(self) -> None:
        """A good night says so in one word."""
        assert find_night_status(night()).sentence == "Night of 2026-11-10: fine."

    def test_alerts_come_first(self, site: Site) -> None:
        """The overview opens with the alerts of the newest night, in words."""
        page = text(site.overview(*ten_nights()))
        assert "Night of 2026-11-19: 1 alert firing." in page
        assert "Context recall fell from 0.930 to 0.700, limit 0.8" in page

    def test_it_says_where(self, site: Site) -> None:
        """A firing metric names the segment that is significantly below all rows."""
        assert "Wheresection=billing (0.50)." in text(site.overview(*ten_nights()))
        billing = site.night(ten_nights()[-1]).partition(">billing<")[2].partition("</tr>")[0]
        assert 'title="[0.470, 0.530], n 200"' in billing

    def test_a_suspect_is_pending(self) -> None:
        """A suspect does not fire, and is not green either."""
        assert find_night_status(night(findings=[finding(level="suspect")])).state == "pending"

    def test_unread_logs_are_no_data(self) -> None:
        """A night that read nothing is no data, whatever its findings say."""
        source = Source(logs="logs/", files=0, rows=0, problem="no file under logs/")
        state = find_night_status(night(source=source))
        assert (state.state, state.notes) == ("no_data", ("no file under logs/",))

    def test_no_mean_is_no_data(self) -> None:
        """A night in which no row was scored is no data."""
        assert (
            find_night_status(night(metrics=[summary("context_recall", None)])).state == "no_data"
        )

    def test_a_blind_rule_is_not_green(self) -> None:
        """A rule without data keeps the night from being called fine."""
        assert find_night_status(night(findings=[finding(level="no_data")])).state == "incomplete"

    def test_a_small_segment_does_not_spoil_a_night(self) -> None:
        """Too few rows in one segment are no reason to worry about the night."""
        small = finding(level="no_data", segment=Segment(tag="section", value="api"))
        assert find_night_status(night(findings=[finding(), small])).state == "ok"

    @pytest.mark.parametrize(
        "gap",
        [
            {"problems": ["context_recall: shard 3 failed"]},
            {
                "source": Source(
                    logs="logs/",
                    files=1,
                    rows=9,
                    broken=[BrokenFile(file="a.jsonl.gz", line=7, reason="cut short")],
                )
            },
        ],
    )
    def test_a_gap_is_not_green(self, gap: dict[str, Any]) -> None:
        """Files cut short and parts that failed are said, and the night is not called fine."""
        assert find_night_status(night(**gap)).state == "incomplete"

    def test_without_rules_nobody_watches(self) -> None:
        """A night that no rule looked at is not called fine."""
        assert find_night_status(night(findings=[])).state == "unwatched"

    def test_state_is_never_colour_alone(self, site: Site) -> None:
        """Every badge carries its word and an icon, every day of the calendar its word."""
        page = site.overview(*ten_nights())
        badges = re.findall(r'<span class="badge is-\w+">(.*?)</span>', page, re.S)
        assert badges
        days = re.findall(r'<td><a class="is-(\w+)"[^>]*>\d+<span class="sr"> (.*?)</span>', page)
        assert days == [("ok", "ok")] * 9 + [("firing", "firing")]
        assert all("<svg" in badge and re.search(r"</svg>\s*\w", badge) for badge in badges)


class TestTrends:
    def test_a_fingerprint_breaks_the_line(self) -> None:
        """The line has a gap, and a label, where another judge begins."""
        llm = JudgeInfo(name="gpt", fingerprint="f2")
        (trend, _) = trends([night(0), night(1), night(2, judge=llm), night(3, judge=llm)])
        figure = trend_figure(trend)
        line = next(t for t in figure["data"] if t["mode"] == "lines+markers")
        assert line["x"] == ["2026-11-10", "2026-11-11", None, "2026-11-12", "2026-11-13"]
        assert line["y"][2] is None
        assert "judge changed" in [note["text"] for note in figure["layout"]["annotations"]]

    def test_a_night_without_data_breaks_the_line(self) -> None:
        """A night without a number is a gap that is marked, not a straight line over it."""
        (trend, _) = trends([night(0), night(1, recall=None), night(2)])
        assert [len(run) for run in trend.runs] == [1, 1]
        labels = [s.get("label", {}).get("text") for s in trend_figure(trend)["layout"]["shapes"]]
        assert "no data" in labels

    def test_changes_compare_like_with_like(self) -> None:
        """A change is measured against the newest earlier night with the same fingerprint."""
        other = night(1, recall=0.5, judge=JudgeInfo(name="gpt", fingerprint="f2"))
        moved = change(night(2), summary("context_recall", 0.90), [night(0), other])
        assert moved is not None
        assert (moved.label, round(moved.by, 3)) == (str(FIRST), -0.03)

    def test_only_thresholds_are_lines(self) -> None:
        """The limit of a `min` rule is a line; the limit of a drop is not a level."""
        drop = finding(rule="context_recall: drop of more than 0.05 against ...", limit=0.05)
        (trend, _) = trends([night(findings=[finding(), drop])])
        assert trend.limits == (0.8,)

    def test_alerts_are_marked(self, site: Site) -> None:
        """Where an alert fired, chart and table say so."""
        (trend, _) = trends(ten_nights())
        marks = [t for t in trend_figure(trend)["data"] if t.get("text")]
        assert [(m["text"], m["x"]) for m in marks] == [(["fired"], ["2026-11-19"])]
        assert "2026-11-19 0.700 [0.670, 0.730] 200 alert fired" in text(
            site.overview(*ten_nights()).replace("</td>", " </td>").replace("</th>", " </th>")
        )

    def test_the_metric_that_fires_comes_first(self) -> None:
        """Metrics that need a reader stand before those that do not."""
        state = [finding("context_relevance", level="breach")]
        assert trends([night(findings=state)])[0].metric == "context_relevance"

    def test_numbers_stand_as_tables_too(self, site: Site) -> None:
        """Each chart has its table, open until a script has drawn the chart."""
        page = Outline(site.overview(*ten_nights()))
        tables = [a for a in page.all("details") if a["class"] == "numbers"]
        assert len(tables) == len(page.all("article")) == len(METRICS) + 2
        assert all("open" in attributes for attributes in tables)


class TestNight:
    def test_it_says_who_judged(self, site: Site) -> None:
        """The judge's note is on every page that shows its numbers."""
        for page in (site.overview(night()), site.night(night()), site.rows(*worst_rows())):
            assert "Judge: lexical (a baseline)." in text(page)
        assert "Judge: lexical (a baseline)." in text(site.rows(*worst_rows()))

    def test_it_says_what_was_not_scored(self, site: Site) -> None:
        """A card counts by status what the mean leaves out."""
        card = summary("context_recall", 0.9, status={"scored": 190, "unreadable": 10})
        assert "10 rows unreadable verdict" in text(site.night(night(metrics=[card])))

    def test_it_says_what_was_left_out(self, site: Site) -> None:
        """Quarantine by reason, broken files, builds and usage are all there."""
        source = Source(
            logs="logs/",
            files=1,
            rows=90,
            quarantined=10,
            reasons={"no question": 10},
            broken=[BrokenFile(file="a.gz", line=7, reason="cut short")],
            index_builds={"build-7": 90},
        )
        page = text(site.night(night(source=source)))
        for told in ("10 rows, 10.0% of", "no question", "a.gz", "build-7, 90 rows", "400 asked"):
            assert told in page

    def test_low_segments_stand_out(self, site: Site) -> None:
        """A segment far below all rows is shaded, and says so by a mark and in words."""
        page = site.night(ten_nights()[-1])
        assert re.search(
            r'class="num shade-3" title="\[0\.470, 0\.530\], n 200">.*?▼▼▼'
            r".*?worse by 0\.20 or more.*?0\.50<",
            page,
        )

    def test_noise_is_not_shaded(self, site: Site) -> None:
        """A segment whose interval reaches the mean of all rows is not shaded, however low."""
        few = summary("context_recall", 0.5, high=0.95, segment=Segment(tag="t", value="v"))
        assert 'class="num shade-0"' in site.night(night(segments=[few]))

    def test_checks_that_are_fine_fold_away(self, site: Site) -> None:
        """What is fine about logs and judge does not stand between a reader and the rules."""
        check = finding(kind="quarantine", rule="at most 5% quarantined", metric=None)
        page = site.night(night(findings=[finding(), check]))
        assert "1 check of the logs and the judge is ok" in page
        assert page.index("Context recall: below 0.8") < page.index("at most 5% quarantined")

    def test_rows_are_one_click_away(self, site: Site) -> None:
        """Each worst row is linked from the night to its place on the page of rows."""
        page = Outline(site.night(ten_nights()[-1], worst_rows()))
        links = [a["href"] for a in page.all("a")]
        assert "rows.html#row=q-2" in links
        target = Outline(site.html("2026-11-19/rows.html"))
        assert "row=q-2" in [a.get("id") for a in target.all("article")]

    def test_a_lost_row_is_named_without_a_link(self, site: Site) -> None:
        """A worst row that cannot be shown keeps its question on the night's page."""
        lost = WorstRow(id="gone", metric="context_recall", value=0.1, user_input="Where is it?")
        page = site.night(night(worst=[lost]))
        assert "Where is it?" in page
        assert "rows.html" not in page

    def test_unknown_metrics_are_shown(self, site: Site) -> None:
        """A metric that is not installed here has its numbers, without a meaning, and its name with
        spaces.
        """
        assert "Our metric" in text(site.night(night(metrics=[summary("our_metric", 0.5)])))

    def test_known_metrics_explain_themselves(self, site: Site) -> None:
        """A metric's name tells at hover what it measures."""
        links = Outline(site.night(night())).all("a")
        named = [a for a in links if a["href"].endswith("#metric-context_recall")]
        titles = [a["title"] for a in named if a["class"] == "term"]
        assert len(titles) == len(named) - 1  # the tile has its numbers at hover
        assert all("reference" in (title or "") for title in titles)


class TestHostileText:
    def test_it_adds_no_element(self, site: Site) -> None:
        """A question made of markup leaves the page's elements as a plain one does."""
        plain = Outline(site.rows(worst_row("q-1", "plain")))
        hostile = Outline(site.rows(worst_row("q-1", HOSTILE)))
        assert hostile.tags == plain.tags
        assert "<script>alert(1)</script> </script> <!channel>" in hostile.text

    @pytest.mark.parametrize("place", ["dataset", "run", "message", "tag", "reason", "metric"])
    def test_no_field_is_trusted(self, site: Site, place: str) -> None:
        """Whatever comes from logs, settings or plugins is text."""

        def pages(value: str) -> list[str]:
            changes: dict[str, dict[str, Any]] = {
                "dataset": {"dataset": value},
                "run": {"run": value},
                "message": {"findings": [finding(level="breach", message=value)]},
                "tag": {"segments": [summary("x", 0.1, segment=Segment(tag=value, value=value))]},
                "reason": {
                    "source": Source(logs=value, files=1, rows=9, quarantined=1, reasons={value: 1})
                },
                "metric": {"metrics": [summary(value, 0.5)]},
            }
            manifest = night(**changes[place])
            return [site.night(manifest), site.overview(manifest)]

        for plain, hostile in zip(pages("plain"), pages(HOSTILE), strict=True):
            assert Outline(hostile).tags == Outline(plain).tags

    def test_no_control_character_is_written(self, site: Site) -> None:
        """Null bytes, escapes and broken surrogates are shown or replaced, never written."""
        page = site.rows(worst_row("q-1", "a\x00b\x1b[31m\ud800\x85"))
        assert "a␀b␛[31m��" in page

    def test_direction_marks_stay_where_they_are(self, site: Site) -> None:
        """Texts are isolated, so that none can turn the page around it."""
        page = site.night(
            night(worst=[WorstRow(id="q", metric="context_recall", value=0, user_input="\u202eX")])
        )
        assert "<bdi>\u202eX</bdi>" in page

    def test_long_texts_are_cut(self, site: Site) -> None:
        """A word of a megabyte is cut, and the page says so."""
        page = site.rows(worst_row("q-1", "How?", retrieved_contexts=("x" * 1_000_000, "y")))
        assert "Cut: the first 4,000 of 1,000,000 characters" in page
        assert len(page) < 50_000

    def test_pages_stay_small(self, site: Site) -> None:
        """Rows of the worst kind in the largest numbers keep a page below 300 kB."""
        contexts = ('"<&\u4e00' * 5_000,) * 1_000
        rows = [worst_row(f"q-{i}", HOSTILE * 900, retrieved_contexts=contexts) for i in range(10)]
        assert len(site.rows(*rows).encode()) < 300_000
        assert len(site.html(f"{FIRST}/index.html").encode()) < 300_000

    def test_many_tags_and_rules_fit(self, site: Site) -> None:
        """Hundreds of segments and rules keep the night's page below 300 kB, worst first."""
        segments = [Segment(tag=f"tag{i}", value=f"v{j}") for i in range(20) for j in range(20)]
        changes: dict[str, Any] = {
            "segments": [summary(m, 0.9, segment=s) for s in segments for m in METRICS],
            "findings": [finding(segment=s, level="breach") for s in segments],
        }
        page = site.night(night(**changes))
        assert len(page.encode()) < 300_000
        assert "300 more rules not shown" in page

    def test_many_metrics_fit(self, site: Site) -> None:
        """Of forty, those that need a reader have their distribution; for the others it is said
        where the scores are.
        """
        names = [f"metric_number_{number}" for number in range(40)]
        segments = [Segment(tag="tag", value=f"v{j}") for j in range(20)]
        changes: dict[str, Any] = {
            "metrics": [summary(name, 0.9) for name in names],
            "segments": [summary(name, 0.9, segment=s) for s in segments for name in names],
            "findings": [finding(name) for name in names],
        }
        page = site.night(night(**changes))
        assert len(page.encode()) < 300_000
        assert page.count("There is no room for its distribution here") == 40 - MOST_DRAWN

    def test_figures_cannot_end_their_script(self, site: Site) -> None:
        """Figures are JSON without any sign that means something to HTML."""
        page = site.overview(*ten_nights())
        islands = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)
        assert len(islands) == len(METRICS) + 2
        for island in islands:
            assert json.loads(island)["data"]
            assert not set("<>&\u2028\u2029") & set(island)


class TestSite:
    def test_a_site_without_nights_has_a_page(self, site: Site) -> None:
        """An empty store says what to do."""
        assert "ragmetrics demo" in site.overview()

    def test_a_night_without_data_has_a_page(self, site: Site) -> None:
        """A night that read nothing shows why, and no empty chart."""
        source = Source(logs="logs/", files=0, rows=0, problem="no file under logs/")
        page = site.night(night(metrics=[], segments=[], findings=[], source=source))
        assert "no file under logs/" in page
        assert "data-figure" not in page

    def test_all_links_are_relative_and_lead_somewhere(self, site: Site) -> None:
        """The site works from any folder: each link and asset is a file of the site."""
        nights = ten_nights()
        write_assets(site.files)
        for i, manifest in enumerate(nights):
            write_night(site.files, manifest, nights[:i], worst_rows())
        site.overview(*nights)
        write_questions(site.files, nights, {nights[-1].date: worst_rows()})
        write_builds(site.files, [])
        write_calibrations(site.files, History())
        site.files.write(comparisons.file, comparisons_page(site.files, "helpdesk"))
        for page, link in _links(site.folder):
            assert not re.match(r"[a-z]+:|/", link), link
            assert (page.parent / link.split("#")[0]).exists(), (page, link)

    def test_nothing_runs_inline(self, site: Site) -> None:
        """No page has a handler, an inline script or an inline style of its own."""
        for page in (site.overview(*ten_nights()), site.night(night()), site.rows(*worst_rows())):
            outline = Outline(page)
            names = {name for _, attributes in outline.elements for name in attributes}
            assert not {name for name in names if name.startswith("on") or name == "style"}
            scripts = outline.all("script")
            assert all(s.get("src") or s.get("type") == "application/json" for s in scripts)
            policy = next(a for a in outline.all("meta") if a.get("http-equiv"))["content"]
            assert "default-src 'none'" in (policy or "")

    def test_assets_are_written_once(self, site: Site) -> None:
        """Plotly's five megabytes are not written again each night."""
        write_assets(site.files)
        (plotly,) = (site.folder / "assets").glob("plotly-*.min.js")
        plotly.write_text("kept")
        write_assets(site.files)
        assert plotly.read_text() == "kept"

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_text_keeps_its_contrast(self, scheme: str) -> None:
        """Text has the contrast of WCAG AA on every ground it stands on."""
        colours = _tokens(scheme)
        grounds = [name for name in colours if name.endswith("-tint")] + ["page", "surface"]
        pairs = [("ink", g) for g in grounds] + [("ink-2", g) for g in grounds]
        pairs += [(name, g) for name in ("ink-3", "accent") for g in ("page", "surface")]
        pairs += [(g.removesuffix("-tint"), g) for g in grounds if g.endswith("-tint")][1:]
        pairs += [(ink, f"shade-{i}") for ink in ("ink", "ink-2") for i in (1, 2, 3)]
        pairs += [("accent", g) for g in grounds if g != "series-tint"]
        pairs += [("firing", "surface"), ("ok", "surface"), ("ink", "mark")]
        for ink, ground in pairs:
            assert _contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)

    def test_states_differ_in_lightness_or_word(self, site: Site) -> None:
        """No two states share word and icon."""
        page = site.overview(*ten_nights(), night(10, findings=[finding(level="suspect")]))
        found = re.findall(r'<a class="is-(\w+)"[^>]*>(<svg.*?</svg><span class="sr">\w+)', page)
        badges = dict(found)
        assert {"firing", "ok", "pending"} <= set(badges)
        assert all(one != other for one, other in combinations(badges.values(), 2))


class TestMarkdown:
    def test_it_is_the_headline(self) -> None:
        """State, findings, one line per metric, and the way to the dashboard."""
        told = summary_markdown(ten_nights()[-1], "https://example.com/dashboard/")
        assert "Night of 2026-11-19: 1 alert firing." in told
        assert "| Context recall | firing | 0.700 [0.670, 0.730] |  | 200 |" in told.replace(
            "\\", ""
        )
        assert "[Open the dashboard](<https://example.com/dashboard/>)" in told

    def test_text_stays_text(self) -> None:
        """Pipes, backticks, links and HTML in texts mean nothing to markdown."""
        hostile = HOSTILE + " [a](http://b)\nnext"
        alert = finding(level="breach", message=hostile)
        manifest = night(metrics=[summary("a|b`c", 0.5)], findings=[alert])
        told = summary_markdown(manifest, "s3://bucket/dashboard/index.html")
        assert "| A\\|bˋc | no rule | 0.500 " in told
        assert "<script" not in told.replace("\\<", "")
        assert "\\[a\\](http:\u2060//b) next" in told
        assert "\u202e" not in told
        assert "\x00" not in told

    def test_buckets_are_named_not_linked(self) -> None:
        """A browser cannot open a bucket, so its address is no link."""
        told = summary_markdown(night(), "s3://bucket/dashboard/index.html")
        assert "Dashboard: s3://bucket/dashboard/index.html" in told


class TestWords:
    def test_numbers_are_rounded_alike(self) -> None:
        """Three digits for a mean and its interval, a true minus, a dash for nothing."""
        assert [number(0.9123), number(-0.2), number(None), number(float("nan"))] == [
            "0.912",
            "−0.200",
            "–",
            "–",
        ]
        assert interval(0.88, 0.944) == "[0.880, 0.944]"
        assert interval(None, 0.9) == ""
        assert [signed(0.0121), signed(-0.231), signed(-1e-4)] == ["+0.012", "−0.231", "no change"]
        assert [number(-0.0001), interval(-0.001, 0.1)] == ["0.000", "[−0.001, 0.100]"]

    def test_shares_are_never_rounded_away(self) -> None:
        """One row of a million is not nothing, and all but one are not all."""
        assert [share(1, 10**6), share(10**6 - 1, 10**6), share(1, 2), share(0, 0)] == [
            "<0.1%",
            ">99.9%",
            "50.0%",
            "–",
        ]

    def test_line_ends_are_kept(self) -> None:
        """Lines stay lines, whatever system wrote them."""
        assert clean("a\r\nb\rc\td") == "a\nb\nc\td"

    def test_marked_sentences_survive_the_cut(self) -> None:
        """A sentence across the cut is marked up to it, one beyond is counted."""
        long = "First one here. " + "x" * LONGEST + " end. Last one here."
        marked = spans(long, "en", [0, 1, 2])
        passage = TextBudget(100_000).passage(long, marked)
        assert sum(len(piece.text) for piece in passage.pieces) == LONGEST
        assert passage.marks_beyond == 1
        assert "needed sentences beyond the cut: 1" in passage.note


def _links(folder: Path) -> Iterator[tuple[Path, str]]:
    for page in folder.rglob("*.html"):
        for tag, attributes in Outline(page.read_text("utf-8")).elements:
            for name in ("href", "src"):
                link = attributes.get(name)
                if link and not link.startswith("#") and not (tag == "link" and "data:" in link):
                    yield page, link


def _tokens(scheme: str) -> dict[str, str]:
    import ragmetrics.dashboard

    style = (Path(ragmetrics.dashboard.__file__).parent / "assets/tokens.css").read_text("utf-8")
    light, _, dark = style.partition("@media")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light if scheme == "light" else dark))


def _contrast(one: str, other: str) -> float:
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
