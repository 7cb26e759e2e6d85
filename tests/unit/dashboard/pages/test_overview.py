"""The overview: all nights on one small page, with what was read and what it cost."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.dashboard import refresh_builds
from ragmetrics.dashboard.night_status import find_night_status
from ragmetrics.dashboard.pages.overview import months
from ragmetrics.dashboard.trend_figure import trend_figure
from ragmetrics.dashboard.trends import LEAST_NIGHTS, NIGHTS, change, trends
from ragmetrics.records import ComparedMeans, JudgeInfo, Manifest, Source
from ragmetrics.records.judging import Usage
from ragmetrics.storage import Files, Runs
from ragmetrics.storage.run_index import outline
from tests.fakes.nights import FIRST, finding, night, summary, ten_nights
from tests.fakes.page_writing import write_overview
from tests.fakes.pages import Site, text


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty site."""
    return Site(tmp_path)


def words(html: str) -> str:
    """The words of a page, with a space where a cell or a line ends."""
    return text(html.replace("</t", " </t").replace("</span", " </span").replace("</p", " </p"))


def nights(count: int, metrics: int = 12) -> list[Manifest]:
    """Nights of many metrics, the newest whole, the others in outline."""
    names = [f"our_metric_{number}" for number in range(metrics)]
    means, rules = [summary(name, 0.8123) for name in names], [finding(name) for name in names]
    found = [night(i, metrics=means, findings=rules) for i in range(count)]
    return [*map(outline, found[:-1]), found[-1]]


MEANS = ComparedMeans(before=0.88, now=0.64, questions=80, paired=True)


class TestSize:
    @pytest.mark.parametrize("metrics", [6, 12, 24])
    def test_a_thousand_nights_stay_small(self, site: Site, metrics: int) -> None:
        """Many metrics over a thousand nights: under 300 kB before charts, and a link to each."""
        page = site.overview(*nights(1_000, metrics))
        charts = r'<svg class="chart".*?</svg>|<script type="application/json".*?</script>'
        assert len(re.sub(charts, "", page, flags=re.DOTALL).encode()) < 300_000
        assert len(page.encode()) < 360_000
        days = [FIRST + timedelta(days=number) for number in range(1_000)]
        assert all(f'href="{day}/index.html"' in page for day in days)

    def test_outlines_are_enough(self, site: Site) -> None:
        """Of older nights neither segments nor worst rows nor histograms are needed."""
        whole = ten_nights()
        outlines = [*map(outline, whole[:-1]), whole[-1]]
        assert site.overview(*outlines) == site.overview(*whole)

    def test_charts_show_fewer_nights_where_metrics_are_many(self) -> None:
        """At most the newest 90 nights, at least 20."""
        assert len(trends([night(i) for i in range(200)])[0].points) == NIGHTS
        many = [summary(f"m{number}", 0.5) for number in range(60)]
        assert len(trends([night(i, metrics=many) for i in range(200)])[0].points) == LEAST_NIGHTS


class TestRules:
    def test_every_rule_is_a_line(self, site: Site) -> None:
        """What it asks for, now and before, and its state as a word."""
        rule = finding(drop=0.24, drop_low=0.16, drop_high=0.34, limit=0.05, means=MEANS)
        page = words(site.overview(night(findings=[rule])))
        assert "Context recall: below 0.8 0.64 0.88 −0.24 0.05 ok" in page

    def test_a_limit_has_at_most_three_digits(self, site: Site) -> None:
        """A share of the mean before is no round number."""
        rule = finding(drop=0.064, limit=0.0719643, means=MEANS)
        assert "0.88 −0.064 0.072 ok" in words(site.overview(night(findings=[rule])))

    def test_fine_checks_fold_away(self, site: Site) -> None:
        """Those of logs and judge; one that is not fine does not."""
        fine = finding(kind="quarantine", rule="at most 5% quarantined", metric=None)
        page = site.overview(night(findings=[finding(), fine]))
        assert page.index("1 check of the logs and the judge is ok") < page.index(
            "at most 5% quarantined"
        )
        bad = fine.model_copy(update={"level": "breach", "state": "firing"})
        assert "logs and judge" not in site.overview(night(findings=[finding(), bad]))


class TestTrends:
    def test_a_new_index_build_is_marked(self, site: Site) -> None:
        """Chart and table say so on the first night that has it, and on no later one."""
        builds = ["b-1", "b-1", "b-2", "b-2"]
        found = [night(i, source=_source(index_builds={b: 9})) for i, b in enumerate(builds)]
        (trend, _) = trends(found)
        assert [point.builds for point in trend.points] == [(), (), ("b-2",), ()]
        (mark,) = [one for one in trend_figure(trend)["data"] if one.get("yaxis") == "y2"]
        assert (mark["x"], mark["customdata"]) == (["2026-11-12"], ["b-2"])
        assert "new index build" in site.overview(*found)

    def test_a_build_cannot_bring_markup_into_a_chart(self) -> None:
        """Plotly reads markup in texts: of a build's name only safe signs are drawn."""
        found = [night(i, source=_source(index_builds={b: 1})) for i, b in enumerate("a<")]
        named = found[1].model_copy(update={"source": _source(index_builds={"<b>x</b> %{y}": 1})})
        (trend, _) = trends([found[0], named])
        (mark,) = [one for one in trend_figure(trend)["data"] if one.get("yaxis") == "y2"]
        assert mark["customdata"] == ["-b-x-b-y-"]

    def test_a_night_without_builds_is_no_new_build(self) -> None:
        """A night whose log says nothing, or that had none, does not make the next one new."""
        builds: list[dict[str, int]] = [{"b-1": 9}, {}, {"b-1": 9}]
        found = [night(i, source=_source(index_builds=b)) for i, b in enumerate(builds)]
        assert all(not point.builds for point in trends(found)[0].points)

    def test_a_change_has_an_interval(self) -> None:
        """From those of both means (MOVER); it is clear where the interval excludes 0."""
        fell = change(night(1), summary("context_recall", 0.70), [night()])
        assert fell is not None and fell.low is not None and fell.high is not None
        assert [round(one, 3) for one in (fell.low, fell.by, fell.high)] == [-0.272, -0.23, -0.188]
        assert fell.clear
        same = change(night(1), summary("context_recall", 0.91), [night()])
        assert same is not None and not same.clear

    def test_a_metric_without_any_number_has_no_empty_chart(self, site: Site) -> None:
        """In its place stands what the metric needs."""
        page = site.overview(night(metrics=[summary("context_recall", None)]))
        assert "plot-context_recall" not in page
        assert "Nothing to score in this night: it needs retrieved_contexts and reference." in page

    def test_the_first_night_says_that_it_is(self, site: Site) -> None:
        """There is a point and no line, and the page says why."""
        page = text(site.overview(night()))
        assert "This is the first night: a line begins with the second one." in page
        assert "This is the first night" not in text(site.overview(night(0), night(1)))


class TestData:
    def test_rows_without_a_score_are_counted_by_reason(self, site: Site) -> None:
        """With the metric that has the most of them, and the commonest reason of quarantine."""
        source = _source(quarantined=5, reasons={"no question": 4, "not JSON": 1})
        lost = summary("context_recall", 0.9, status={"scored": 190, "unreadable": 10})
        page = words(site.overview(night(source=source, metrics=[lost])))
        assert "Unreadable verdict" in page
        assert "2026-11-10 200 5no question 10context_recall" in page

    def test_no_row_at_all_has_no_empty_chart(self, site: Site) -> None:
        """A sentence stands in its place."""
        empty = Source(logs="logs/", files=0, rows=0, problem="no file under logs/")
        page = site.overview(night(source=empty, metrics=[], findings=[]))
        assert "plot-rows" not in page
        assert "No row was read on this night." in page
        assert "No metric has been scored yet" in page


class TestCost:
    def test_a_free_judge_has_no_empty_chart(self, site: Site) -> None:
        """That nothing was asked is said in words."""
        page = site.overview(night(usage=Usage()))
        assert "plot-requests" not in page
        assert "No request was sent over a network" in text(page)

    def test_money_and_requests_stand_by_night(self, site: Site) -> None:
        """Two charts and a table."""
        paid = Usage(requests=400, answered_from_store=50, prompt_tokens=90_000, usd=1.25)
        page = site.overview(night(usage=paid))
        assert "plot-money" in page and "plot-requests" in page
        assert "$1.25 400 50 90,000 lexical" in words(page)

    def test_money_that_is_not_known_is_a_dash(self, site: Site) -> None:
        """Never $0.00; the page says which setting is missing."""
        page = site.overview(night(usage=Usage(requests=4, prompt_tokens=900)))
        assert "A dash means that the cost is unknown, because a price is not set" in text(page)
        assert "plot-money" not in page
        assert "$0.00" not in page


class TestCalendar:
    def test_a_day_without_a_night_says_so(self, site: Site) -> None:
        """And one on which a run began that did not end says that."""
        found = [night(0), night(1), night(4)]
        died = FIRST + timedelta(days=2)
        page = site.html(write_overview(site.files, found, died=[died]))
        assert 'class="died" title="a run began and did not end">12<' in page
        assert 'title="no night">13<' in page
        assert 'href="2026-11-14/index.html"' in page

    def test_months_are_whole_weeks_newest_first(self) -> None:
        """Monday first; what lies outside the month or all nights is empty."""
        found = months(find_night_status(night(i)) for i in (0, 30))
        assert [one.name for one in found] == ["December 2026", "November 2026"]
        assert all(len(week) == 7 for one in found for week in one.weeks)
        days = [day.date for one in found for week in one.weeks for day in week if day]
        assert sorted(days) == [FIRST + timedelta(days=i) for i in range(31)]
        assert all(
            day.date.weekday() == i
            for month in found
            for w in month.weeks
            for i, day in enumerate(w)
            if day
        )

    def test_a_far_away_night_costs_no_pages(self) -> None:
        """Months without a night are left out: a wrong date does not make a century of them."""
        old = night().model_copy(update={"date": FIRST.replace(year=1970)})
        assert len(months(map(find_night_status, (old, night())))) == 2

    def test_the_list_of_nights_has_their_states(self, site: Site) -> None:
        """For pages that were written before the next night was there."""
        site.overview(night(0), night(1, recall=0.7))
        assert site.html("nights.js") == (
            'const NIGHTS = ["2026-11-10","2026-11-11"];\nconst STATES = ["ok","firing"];\n'
        )


def test_a_judge_change_is_said_once(site: Site) -> None:
    """In the table of each metric, on the night it begins."""
    llm = JudgeInfo(name="gpt", fingerprint="f2")
    page = site.overview(night(0), night(1, judge=llm), night(2, judge=llm))
    assert len(re.findall(r"<td>judge changed </td>", page)) == 2


def test_a_hostile_name_adds_no_element(site: Site) -> None:
    """Of metric, judge, build or reason of quarantine."""
    bad = "<img src=x onerror=alert(1)>"
    source = _source(quarantined=1, reasons={bad: 1}, index_builds={bad: 1})
    judge = JudgeInfo(name=bad, fingerprint="f", note=bad)
    page = site.overview(night(0), night(1, source=source, judge=judge))
    assert "<img" not in page


def _source(**change: Any) -> Source:
    return Source(**{"logs": "logs/", "files": 1, "rows": 200, **change})


def test_the_page_of_no_night_says_how_to_begin(tmp_path: Path) -> None:
    """Before the first night there is a page, too."""
    site = Files(str(tmp_path))
    assert "No night has been evaluated yet." in site.read(write_overview(site, [])).decode()


def test_a_run_that_left_no_night_is_found_in_the_store(tmp_path: Path) -> None:
    """Its rows were staged, and nothing was published: it was killed, say."""
    files = Files(str(tmp_path))
    for manifest in (night(0), night(4)):
        Runs(files).save(manifest)
    files.write(f"rows/dt={FIRST + timedelta(days=2)}/run=a/staged.json", b"{}")
    refresh_builds(files)
    page = files.read("dashboard/index.html").decode()
    assert 'class="died" title="a run began and did not end">12<' in page
    assert '<td title="no night">13<' in page
