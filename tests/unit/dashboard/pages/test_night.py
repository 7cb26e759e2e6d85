"""The page of one night, above all of those on which something is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.dashboard.cards import moved
from ragmetrics.dashboard.night_tables import tag_tables
from ragmetrics.dashboard.pages.night import night_page
from ragmetrics.dashboard.row_selection import EarlierNight, SelectionReason
from ragmetrics.records import BrokenFile, ComparedMeans, Manifest, Move, Segment, Source, Summary
from tests.fakes.nights import FIRST, as_worst, fall, finding, night, summary, ten_nights, worst_row
from tests.fakes.pages import Outline, Site, text


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty site."""
    return Site(tmp_path)


def page(manifest: Manifest, *earlier: Manifest, **more: Any) -> str:
    """The page of a night."""
    return night_page(manifest, earlier, **more).decode()


def words(manifest: Manifest, *earlier: Manifest, **more: Any) -> str:
    """What it says."""
    return text(page(manifest, *earlier, **more).replace("</t", " </t"))


def without_data(**source: Any) -> Manifest:
    """A night of which no row was scored, as a run leaves it: its metrics are there."""
    read = Source(**{"logs": "logs/dt=2026-11-10/", "files": 1, "rows": 0, **source})
    status = {"not_applicable": read.rows} if read.rows else {}
    empty = summary("context_recall", None, status=status)
    return night(metrics=[empty], segments=[], findings=[], source=read)


class TestGaps:
    def test_a_run_that_died_half_way_says_what_is_missing(self) -> None:
        """What was scored stands below; how to fill the gap is said."""
        half = summary("context_recall", 0.9, status={"scored": 100, "judge_failed": 100})
        told = words(night(metrics=[half], problems=["context_recall, shard 1: connection lost"]))
        assert "nothing firing, but not all was scored" in told
        assert "What is missing" in told
        assert "context_recall, shard 1: connection lost" in told
        assert "the numbers below are of the rows that were scored" in told
        assert "ragmetrics nightly --date 2026-11-10" in told
        assert "0.900" in told
        assert "100 rows judge failed" in told

    @pytest.mark.parametrize(
        ("run", "command"),
        [
            ("", "ragmetrics nightly"),
            ("https://prefect.example.com/r/1", "python -m flows.nightly"),
        ],
    )
    def test_advice_names_the_command_that_ran_the_night(self, run: str, command: str) -> None:
        """Those without Prefect have no `flows`."""
        told = words(night(problems=["shard 1: connection lost"], flow_run=run))
        assert f"Run the night again to fill the gaps: {command} --date 2026-11-10" in told

    def test_where_nothing_was_scored_the_rules_of_the_night_before_have_no_data(self) -> None:
        """No rule vanishes: each says that it was not checked."""
        rule = "context_recall: drop of more than 0.05 against the 7 nights before"
        told = words(without_data(), night(findings=[finding(rule=rule)]))
        assert "no data" in told
        assert "Context recall: not checked, as nothing was scored" in told
        assert rule.replace("context_recall", "Context recall") in told

    def test_a_cut_log_file_is_named(self) -> None:
        """What came before the break is in the numbers."""
        cut = BrokenFile(file="a.jsonl.gz", line=7, reason="cut short")
        source = Source(logs="logs/", files=2, rows=90, broken=[cut])
        told = words(night(source=source))
        assert "1 log file could not be read to the end" in told
        assert "a.jsonl.gz, line 7: cut short" in told

    @pytest.mark.parametrize(
        ("source", "said"),
        [
            ({"files": 0, "problem": "no log file at logs/"}, "A late export is the usual reason."),
            ({"quarantined": 9, "reasons": {"not JSON": 9}}, "No row could be read: 9 rows"),
            ({}, "The log is there, but empty"),
            ({"rows": 9}, "9 rows were read and none has a score."),
        ],
    )
    def test_a_night_without_data_says_what_to_do(self, source: dict[str, Any], said: str) -> None:
        """By why it has none; and where the last good night is."""
        told = words(without_data(**source), night().model_copy(update={"date": FIRST}))
        assert "no data" in told
        assert "What to do" in told
        assert said in told
        assert f"Until then, see the night before: {FIRST}." in told

    def test_a_night_without_data_has_no_empty_chart_or_table(self) -> None:
        """Neither cards nor a heat map nor a coverage table of nothing."""
        html = page(without_data(files=0, problem="no log file at logs/"))
        assert "data-figure" not in html
        for section in ("metrics", "tags", "worst", "coverage"):
            assert f'id="{section}"' not in html

    def test_a_good_night_has_no_gap(self) -> None:
        """Then neither section is there."""
        html = page(night())
        assert "What to do" not in html
        assert "What is missing" not in html

    def test_a_first_night_says_that_it_is(self) -> None:
        """On the page and on each card; the second one compares."""
        told = words(night())
        assert told.count("The first night: nothing to compare with yet.") == 3
        assert "first night" not in words(night(1), night(0))

    def test_a_metric_with_nothing_to_score_says_what_it_needs(self) -> None:
        """In place of a number and a chart, beside the metrics that have both."""
        html = page(night(metrics=[summary("context_recall", None), summary("mrr", 0.4)]))
        assert "plot-context_recall" not in html
        assert "plot-mrr" in html
        told = text(html)
        assert "Nothing to score: 200 rows not applicable." in told
        assert "It needs retrieved_contexts and reference." in told


class TestCards:
    def test_a_change_is_that_of_the_rule(self) -> None:
        """Question by question, against the rule's baseline, with its interval."""
        drop = {"drop": 0.22, "drop_low": 0.13, "drop_high": 0.31, "baseline": 0.885}
        told = finding(**drop, baseline_label="7 nights before")
        found = moved(night(findings=[told]), summary("context_recall", 0.66), [])
        assert found is not None and found.clear and found.worse and found.by_rule
        assert (found.by, found.low, found.high) == (-0.22, -0.31, -0.13)
        shown = words(night(findings=[told]))
        assert (
            "▼ −0.22 [−0.31, −0.13] compared with 7 nights before (mean of all rows 0.885)" in shown
        )

    def test_a_drop_stands_beside_the_means_that_it_is_of(self) -> None:
        """Which are not those of all rows, and may go the other way."""
        drop = {"drop": 0.004, "drop_low": -0.005, "drop_high": 0.013, "baseline": 0.281}
        means = ComparedMeans(before=0.285, now=0.281, questions=138, paired=True)
        told = finding(**drop, baseline_label="7 nights before", means=means)
        shown = words(night(findings=[told], metrics=[summary("context_recall", 0.292)]))
        assert "compared with 7 nights before: 0.285 → 0.281 over the same 138 questions" in shown
        assert "Compared Drop" in shown
        assert "0.285 → 0.281 over the same 138 questions, 7 nights before" in shown

    def test_a_drop_of_other_questions_says_how_they_count(self) -> None:
        """Where too few were asked again, the drop is that of each side's own."""
        drop = {"drop": 0.004, "drop_low": -0.005, "drop_high": 0.013, "baseline": 0.281}
        means = ComparedMeans(before=0.285, now=0.281, questions=138, paired=False)
        told = finding(**drop, baseline_label="7 nights before", paired=False, means=means)
        over = words(night(findings=[told], metrics=[summary("context_recall", 0.292)]))
        assert "0.285 → 0.281 over 138 questions, each counted once" in over

    def test_without_a_rule_it_is_that_of_the_questions_of_both(self) -> None:
        """As the night's record has it; one that kept no means says what the night before was."""
        means = ComparedMeans(before=0.925, now=0.929, questions=120, paired=True)
        move = Move(
            metric="context_recall", since=FIRST, run="run-0", by=0.004, low=-0.001, high=0.009
        )
        kept = move.model_copy(update={"means": means})
        for shown, told in (
            (move, " (mean of all rows 0.930)"),
            (kept, ": 0.925 → 0.929 over the same 120 questions"),
        ):
            found = night(1, moves=[shown], metrics=[summary("context_recall", 0.92)])
            said = f"▲ +0.004 [−0.001, +0.009] since 2026-11-10{told}"
            assert said in words(found, night())

    def test_a_fall_that_no_rule_watches_is_the_change(self) -> None:
        """The headline measured it."""
        fallen = fall("context_recall", 0.9, 0.6)
        found = moved(night(falls=[fallen]), summary("context_recall", 0.6), [])
        assert found is not None and (found.low, found.high) == (-0.36, -0.24)

    def test_where_lower_is_better_a_rise_is_worse(self) -> None:
        """A drop of a rule is for the worse, so the mean rose."""
        fallen = fall("noise_sensitivity", 0.1, 0.4)
        noise = summary("noise_sensitivity", 0.4, higher_is_better=False)
        found = moved(night(falls=[fallen]), noise, [])
        assert found is not None and found.worse
        assert (found.low, found.by, found.high) == (0.24, 0.3, 0.36)

    def test_means_have_three_digits(self) -> None:
        """Whatever their interval is: so a night has one number in a metric, wherever it stands."""
        wide = summary("context_recall", 0.662, low=0.56, high=0.75)
        told = words(night(metrics=[wide, summary("context_relevance", 0.2421)]))
        assert "0.662 [0.560, 0.750]" in told
        assert "0.242 [0.212, 0.272]" in told


class TestWhere:
    def test_the_tag_with_the_worst_value_comes_first(self) -> None:
        """A reader sees where without choosing."""
        segments = [_segment("channel", "app", 0.92), _segment("section", "billing", 0.5)]
        tables = tag_tables(night(segments=segments))
        assert [(table.tag, table.low) for table in tables] == [("section", 1), ("channel", 0)]

    def test_of_many_values_the_deepest_losses_are_shown(self) -> None:
        """Those that are significantly worse first; of the others, those that are lowest."""
        segments = [_segment("user", f"u{n:03}", 0.93) for n in range(100)]
        segments += [_segment("user", "z-low", 0.89), _segment("user", "z-worst", 0.5)]
        (table,) = tag_tables(night(segments=segments))
        assert [line.value for line in table.lines][:3] == ["z-worst", "z-low", "u000"]
        assert table.more == 102 - len(table.lines) > 0

    def test_all_tags_are_shown_without_scripts(self) -> None:
        """The choice is hidden until a script can serve it; no table is."""
        segments = [_segment("channel", "app", 0.92), _segment("section", "billing", 0.5)]
        html = page(night(segments=segments))
        outline = Outline(html)
        heat = [one for one in outline.all("div") if one.get("class") == "heat"]
        assert [one["id"] for one in heat] == ["tag-section", "tag-channel"]
        assert not any("hidden" in one for one in heat)
        assert "hidden" in next(one for one in outline.all("div") if one.get("class") == "choose")
        shown = [one["data-shows"] for one in outline.all("button")]
        assert shown == ["tag-section", "tag-channel", ""]

    def test_the_headline_leads_to_the_questions_of_the_segment(self) -> None:
        """Of a firing metric, the segment that is significantly below all rows."""
        html = page(ten_nights()[-1], rows=[worst_row("q-1", "Who pays?")])
        link = "rows.html#metric=context_recall&amp;tag=section%3Dbilling"
        assert f'<a href="{link}"><bdi>section=billing</bdi></a> (0.50)' in html

    def test_without_kept_rows_the_headline_leads_to_the_tag(self) -> None:
        """If the page has its table; a tag beyond the most that are shown has no link."""
        shown = ten_nights()[-1]
        assert '<a href="#tag-section"><bdi>section=billing</bdi></a> (0.50)' in page(shown)
        many = [_segment(f"t{n:03}", "x", 0.9) for n in range(100)]
        html = page(night(9, recall=0.70, segments=[*many, *shown.segments]))
        assert "<bdi>section=billing</bdi> (0.50)" in html
        assert "#tag-section" not in html

    def test_the_button_leads_to_the_questions_of_the_headline(self) -> None:
        """Of its metric, whichever card stands first."""
        segment = Segment(tag="section", value="api")
        low = {"level": "breach", "mean": 0.5, "metric": "context_relevance"}
        firing = finding(
            key="helpdesk/context_relevance/section=api/min 0.8", segment=segment, **low
        )
        pending = finding("context_recall", level="suspect", state="pending", mean=0.7)
        shown = night(findings=[pending, firing])
        html = page(shown, rows=[worst_row("q-1", "Who pays?")], links=[("Rows", "rows.html")])
        assert "<span>Context relevance (graded) in section=api is 0.50" in html
        assert 'href="rows.html#metric=context_relevance">Rows' in html


class TestRows:
    def test_rows_that_fell_most_stand_before_the_lowest(self) -> None:
        """With what their question had before; each leads to its texts."""
        fell = worst_row("q 1", "How is an invoice changed?", why=(_fell(1.0, 0.25),))
        low = worst_row("q-2", "Who pays?", position=1)
        html = page(night(worst=as_worst(low)), night(0), rows=[fell, low])
        told = text(html)
        assert "How is an invoice changed?" in told and "1.00 →to 0.25" in told
        assert told.index("Questions that fell") < told.index("Lowest tonight")
        links = [one["href"] for one in Outline(html).all("a")]
        assert "rows.html#row=q%201" in links
        assert "rows.html#row=q-2" in links

    def test_those_that_fell_furthest_come_first(self) -> None:
        """Whatever else they are kept for: a row that is also among the worst does not go ahead."""
        little = worst_row(
            "q-1",
            "Little?",
            why=(SelectionReason("worst", "mrr", 0.0), SelectionReason("fell", "mrr", 0.0, 0.25)),
        )
        far = worst_row(
            "q-2", "Far?", position=1, why=(SelectionReason("fell", "mrr", 0.125, 0.625),)
        )
        told = words(night(worst=as_worst(little)), night(0), rows=[little, far])
        assert told.index("Far? 0.62 →to 0.12") < told.index("Little? 0.25 →to 0.00")

    def test_the_failing_metric_comes_before_a_larger_fall(self) -> None:
        """And the other columns have what moved in the same question, however little."""
        then = EarlierNight(FIRST, None, {"context_relevance": 0.75, "faithfulness": 0.5}, ())
        recall = worst_row("q-1", "Recall?", why=(_fell(0.25, 0.0),), earlier=(then,))
        why = SelectionReason("fell", "context_relevance", 0.0, 1.0)
        other = worst_row("q-2", "Other?", position=1, why=(why,))
        told = words(night(1, recall=0.7), night(0), rows=[other, recall])
        assert told.index("Recall? 0.25 →to 0.00 0.75 →to 0.50") < told.index("Other? – 1.00")

    def test_without_kept_rows_there_is_no_link(self) -> None:
        """Where the night's rows are gone from the store, the questions stand as text."""
        html = page(night(worst=as_worst(worst_row("q-1", "Who pays?"))))
        assert "Who pays?" in html
        assert "rows.html" not in html


class TestMadeOf:
    def test_coverage_counts_rows_by_status(self) -> None:
        """Of each metric, with shares."""
        lost = summary("context_recall", 0.9, status={"scored": 150, "unreadable": 50})
        told = words(night(metrics=[lost]))
        assert "Context recall 150 75.0% 50 25.0%" in told

    def test_a_status_of_a_later_version_is_counted(self) -> None:
        """Under its own name."""
        odd = summary("context_recall", 0.9, status={"scored": 150, "asleep": 50})
        assert "asleep" in words(night(metrics=[odd]))

    def test_the_run_and_the_scores_can_be_found(self) -> None:
        """Where Prefect shows the run, and where the Parquet lies."""
        run = "https://prefect.example.com/runs/flow-run/1"
        html = page(night(flow_run=run), raw="s3://bucket/store/scores/dt=2026-11-10/run=a")
        assert f'href="{run}"' in html
        assert "s3://bucket/store/scores/dt=2026-11-10/run=a" in html

    @pytest.mark.parametrize("address", ["javascript:alert(1)", "None/flow-runs/1", "//evil", ""])
    def test_only_a_web_address_is_a_link(self, address: str) -> None:
        """A manifest may hold anything."""
        assert "in Prefect" not in page(night(flow_run=address))

    def test_settings_are_shown_as_yaml(self) -> None:
        """Escaped; where an older version kept none there is no empty box."""
        html = page(night(settings={"dataset": "help", "judge": {"name": "</pre><script>"}}))
        assert "dataset: help" in html
        assert "&lt;/pre&gt;&lt;script&gt;" in html
        assert "Settings of this run" not in page(night())

    def test_other_pages_are_linked(self) -> None:
        """The page of changes, if the night has one."""
        html = page(night(), links=[("Compare with 2026-11-18", "changes.html")])
        assert '<a class="button main" href="changes.html">Compare with 2026-11-18</a>' in html
        assert "changes.html" not in page(night())


def _segment(tag: str, value: str, mean: float) -> Summary:
    return summary("context_recall", mean, segment=Segment(tag=tag, value=value))


def _fell(before: float, value: float) -> SelectionReason:
    return SelectionReason("fell", "context_recall", value, before)
