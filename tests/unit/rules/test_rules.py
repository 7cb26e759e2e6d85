"""Rules: when a night's numbers are ok, suspect, a breach, or no data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import pandas as pd
import pytest

from ragmetrics.config import AlertSettings, Rule
from ragmetrics.delivery.state import AlertStates, advance_states
from ragmetrics.records import AlertState, BrokenFile, Level, Manifest, Segment
from ragmetrics.rules import NightContext, evaluate_rules
from ragmetrics.scoring import MetricScores
from tests.fakes.past import (
    NOISY,
    TONIGHT,
    a_night,
    fallen,
    hold,
    metric_findings,
    recall,
    scores,
    story,
    the,
    uneven,
)

# min


@pytest.mark.parametrize(
    ("values", "level"),
    [
        (NOISY, "ok"),
        ([0.5, 0.85] * 20, "suspect"),
        ([0.3, 0.5] * 20, "breach"),
        ([0.7] * 40, "ok"),
        ([0.0] * 40, "breach"),
    ],
)
def test_min_is_a_breach_where_the_interval_is_below_it_too(
    values: list[float], level: Level
) -> None:
    """Above the limit ok; below it suspect, and a breach where chance cannot explain it."""
    (found,) = metric_findings(recall(min=0.7), a_night(scores(values)))
    assert found.level == level


def test_a_finding_carries_its_numbers() -> None:
    """Mean, interval, rows, questions and limit, in the record and in one plain sentence."""
    tonight = a_night(scores([0.3, 0.5] * 20))
    (found,) = metric_findings(recall(min=0.7), tonight)
    summary = tonight.manifest.metrics[0]
    assert (found.mean, found.low, found.high) == (summary.mean, summary.low, summary.high)
    assert (found.n, found.questions, found.limit) == (40, 40, 0.7)
    assert found.key == "demo/context_recall/all/min 0.7"
    assert found.message.startswith("context_recall is 0.400 [0.3")


@pytest.mark.parametrize(("was", "level"), [("firing", "suspect"), ("ok", "ok")])
def test_a_firing_min_clears_at_its_clear_value(was: str, level: Level) -> None:
    """Between limit and clear value a firing alert goes on, and a silent one stays silent."""
    rule, tonight = recall(min=0.7, clear=0.85), a_night(scores(NOISY))
    (before,) = metric_findings(rule, tonight)
    was_level = "breach" if was == "firing" else "ok"
    earlier = a_night(ago=1, findings=[before.model_copy(update={"level": was_level})])
    (found,) = metric_findings(rule, tonight, earlier)
    assert found.level == level


def test_too_few_rows_are_no_data() -> None:
    """Nineteen rows say nothing, whatever their mean; missing verdicts are told."""
    values: list[float | None] = [1.0] * 19 + [None]
    (found,) = metric_findings(recall(min=0.7), a_night(scores(values)))
    assert found.level == "no_data"
    assert found.message == "context_recall: 19 rows scored, 20 needed (1 judge failed)"
    (found,) = metric_findings(recall(min=0.7, min_rows=19), a_night(scores(values)))
    assert found.level == "ok"


def test_a_metric_that_was_not_scored_is_no_data() -> None:
    """A rule on a metric that nobody runs is not silently fine."""
    found = metric_findings(recall(min=0.7, max_drop=0.1), a_night(scores(NOISY, "other")))
    assert [one.level for one in found] == ["no_data", "no_data"]


# max_drop


@pytest.mark.parametrize(
    ("now", "level"),
    [
        (NOISY, "ok"),
        (fallen(0.04), "ok"),
        (fallen(0.2), "breach"),
        (fallen(-0.2), "ok"),
        ([0.8 - (i == 0) * 0.8 - (i == 1) * 0.9 for i in range(20)], "suspect"),
    ],
)
def test_max_drop_is_a_breach_where_the_drop_is_significant(now: list[float], level: Level) -> None:
    """Beyond the limit and no accident: breach; beyond it by two bad rows: suspect."""
    before = NOISY if len(now) == 40 else [0.8] * 20
    tonight, earlier = a_night(scores(now)), a_night(scores(before), ago=1)
    (found,) = metric_findings(recall(max_drop=0.05), tonight, earlier)
    assert found.level == level


def test_a_drop_carries_what_it_is_measured_against() -> None:
    """From what to what, since when, with interval and p."""
    tonight, earlier = a_night(scores(fallen(0.2))), a_night(scores(NOISY), ago=1)
    (found,) = metric_findings(recall(max_drop=0.05), tonight, earlier)
    assert found.drop == pytest.approx(0.2)
    assert (found.baseline, found.baseline_label) == (pytest.approx(0.8), "2026-11-18")
    assert found.p_value is not None
    assert found.p_value < 0.001
    assert "fell from 0.800 to 0.600 over the same 40 questions (2026-11-18); drop" in found.message


def test_previous_is_the_last_night_scored_by_the_same_judge() -> None:
    """However long ago: here three days, with another judge's night in between."""
    earlier = [
        a_night(scores(fallen(0.5)), ago=4),
        a_night(scores(NOISY), ago=3),
        a_night(scores(fallen(0.5)), ago=1, judge="judge-2"),
    ]
    rule = recall(max_drop=0.05, versus="previous")
    (found,) = metric_findings(rule, a_night(scores(fallen(0.2))), *earlier)
    assert (found.level, found.baseline_label) == ("breach", "2026-11-16")


def test_trailing_is_the_last_nights_that_compare() -> None:
    """Means 0.7 and 0.9 of the last two nights are 0.8; what is older does not count."""
    earlier = [
        a_night(scores(fallen(0.8)), ago=4),
        a_night(scores(fallen(0.1)), ago=3),
        a_night(scores(fallen(-0.1)), ago=1),
    ]
    rule = recall(max_drop=0.05, versus="trailing:2")
    (found,) = metric_findings(rule, a_night(scores(fallen(0.2))), *earlier)
    assert (found.level, found.baseline_label) == ("breach", "2 nights before")
    assert found.baseline == pytest.approx(0.8)
    assert found.drop == pytest.approx(0.2)


@pytest.mark.parametrize("versus", ["previous", "trailing:7"])
@pytest.mark.parametrize(("now", "level"), [(fallen(0.3), "breach"), (NOISY, "ok")])
def test_a_drop_that_stays_keeps_firing(versus: str, now: list[float], level: Level) -> None:
    """Nights on which the alert fired are no measure: it resolves when the mean is back."""
    rule = recall(max_drop=0.05, versus=versus)
    good, bad = a_night(scores(NOISY), ago=3), scores(fallen(0.3))
    (fired,) = metric_findings(rule, a_night(bad, ago=2), good)
    firing = [fired.model_copy(update={"state": "firing"})]
    earlier = [good, *(a_night(bad, ago=days, findings=firing) for days in (2, 1))]
    (found,) = metric_findings(rule, a_night(scores(now)), *earlier)
    assert (found.level, found.baseline) == (level, pytest.approx(0.8))


def test_the_first_night_has_nothing_to_compare_with() -> None:
    """That is fine, and said."""
    (found,) = metric_findings(recall(max_drop=0.05), a_night(scores(NOISY)))
    assert found.level == "ok"
    assert "not compared yet: no earlier night" in found.message


@pytest.mark.parametrize(("was", "level"), [("firing", "suspect"), ("ok", "ok")])
def test_a_firing_max_drop_clears_at_its_clear_value(was: str, level: Level) -> None:
    """A drop back within the limit clears only at the drop that the rule says."""
    rule, tonight = recall(max_drop=0.1, clear=0.02), a_night(scores(fallen(0.05)))
    good = a_night(scores(NOISY), ago=2)
    (before,) = metric_findings(rule, tonight, good)
    findings = [before.model_copy(update={"level": "breach" if was == "firing" else "ok"})]
    last = a_night(scores(NOISY), ago=1, findings=findings)
    (found,) = metric_findings(rule, tonight, good, last)
    assert found.level == level


def test_min_and_max_drop_of_one_rule_are_two_findings() -> None:
    """Each limit has its own key and its own verdict."""
    tonight, earlier = a_night(scores(fallen(0.2))), a_night(scores(NOISY), ago=1)
    found = metric_findings(recall(min=0.5, max_drop=0.05), tonight, earlier)
    assert [one.level for one in found] == ["ok", "breach"]
    assert len({one.key for one in found}) == 2


# Families of tests


def test_one_doubtful_drop_among_many_tests_is_only_suspect() -> None:
    """p = 0.03 is a breach alone; among four tests one such p is to be expected."""
    others = [f"other_{i}" for i in range(3)]
    names = ["context_recall", *others]
    rules = [Rule(metric=name, max_drop=0.05, **{"for": 1}) for name in names]
    tonight = a_night(scores(uneven(0.1)), *(scores(uneven(0.0), name) for name in others))
    earlier = a_night(*(scores([0.5] * 20, name) for name in names), ago=1)
    (alone,) = metric_findings(rules[:1], tonight, earlier, false_alarms=0.05)
    among = metric_findings(rules, tonight, earlier, false_alarms=0.05)
    assert alone.p_value == pytest.approx(0.03, abs=0.01)
    assert [alone.level, among[0].level] == ["breach", "suspect"]
    assert among[0].p_value == pytest.approx(4 * alone.p_value)


def test_many_real_drops_are_all_breaches() -> None:
    """Control of the family costs little where the whole family fell."""
    names = [f"metric_{i}" for i in range(4)]
    tonight = a_night(*(scores(uneven(0.1), name) for name in names))
    earlier = a_night(*(scores([0.5] * 20, name) for name in names), ago=1)
    rules = [Rule(metric=name, max_drop=0.05, **{"for": 1}) for name in names]
    found = metric_findings(rules, tonight, earlier, false_alarms=0.05)
    assert [one.level for one in found] == ["breach"] * 4


@pytest.mark.parametrize(("false_alarms", "level"), [(0.01, "suspect"), (0.05, "breach")])
def test_how_sure_a_breach_must_be_is_a_setting(false_alarms: float, level: Level) -> None:
    """p = 0.03 on a night without other rules."""
    tonight, earlier = a_night(scores(uneven(0.1))), a_night(scores([0.5] * 20), ago=1)
    rule = recall(max_drop=0.05, **{"for": 1})
    (found,) = metric_findings(rule, tonight, earlier, false_alarms=false_alarms)
    assert found.level == level


def test_more_nights_are_more_chances_of_a_false_alarm() -> None:
    """A rule that may put three nights together makes five comparisons, and pays for them."""
    tonight, earlier = a_night(scores(uneven(0.1))), a_night(scores([0.5] * 20), ago=1)
    p = [
        metric_findings(recall(max_drop=0.05, **{"for": nights}), tonight, earlier)[0].p_value
        for nights in (1, 3)
    ]
    assert p[1] == pytest.approx(5 * (p[0] or 0))


# Spells


QUIET = [uneven(0.0, shift=shift) for shift in (0, 3, 2, 1, 0, 1, 3)]
"""A week at 0.5, on which each question moves as much as on the nights that follow."""


def test_a_doubtful_drop_is_found_by_two_nights_together() -> None:
    """Either night alone may be chance; both together, against the week before, are not."""
    rule = recall(max_drop=0.05, versus="trailing:7")
    told = story(rule, *QUIET, uneven(0.12), uneven(0.12, shift=2))
    assert [one.state for one in told[6:]] == ["ok", "pending", "firing"]
    assert (told[8].level, told[8].since) == ("breach", told[7].since)
    assert told[8].drop == pytest.approx(0.12)
    over = "over the same 20 questions (7 nights before, in 2 nights together); drop 0.120"
    assert f"fell from 0.500 to 0.380 {over}" in told[8].message


def test_suspects_of_a_drop_never_fire_by_their_number() -> None:
    """The same doubtful questions again and again are no new evidence."""
    told = story(recall(max_drop=0.05, **{"for": 4}), [0.5] * 20, *[uneven(0.1, 0.5)] * 5)
    assert [one.transition for one in told] == [None] * 6
    assert [one.state for one in told[:5]] == ["ok", *["pending"] * 4]


def test_a_collapse_after_a_doubtful_night_is_not_diluted() -> None:
    """Tonight alone is sure: it is not put together with a night that was not."""
    told = story(recall(max_drop=0.05), [0.5] * 20, uneven(0.1, 0.5), [0.1] * 20)
    assert (told[2].level, told[2].drop) == ("breach", pytest.approx(0.4))
    assert "nights" not in told[2].message


def test_nights_that_led_to_an_alarm_are_no_baseline() -> None:
    """The pending night was poor already: against it the drop that stays would look resolved."""
    rule = recall(max_drop=0.05, versus="trailing:7")
    low = [uneven(0.12, shift=shift) for shift in (0, 2, 1, 3)]
    told = story(rule, *QUIET, *low)
    assert [one.state for one in told[6:]] == ["ok", "pending", *["firing"] * 3]
    assert {round(one.baseline or 0, 6) for one in told[7:]} == {0.5}


def test_a_pending_spell_that_ended_counts_as_baseline_again() -> None:
    """To leave all poor nights out for good would make of the best ones the measure."""
    rule = recall(max_drop=0.05, versus="trailing:7")
    told = story(rule, [0.5] * 20, uneven(0.1), [0.5] * 20, [0.5] * 20)
    assert [one.state for one in told] == ["ok", "pending", "ok", "ok"]
    assert told[3].baseline_label == "3 nights before"


def test_a_night_that_is_back_tells_of_itself() -> None:
    """Resolved by tonight's rows: the poor nights before it are not counted in."""
    told = story(recall(max_drop=0.05), [0.5] * 20, [0.3] * 20, [0.5] * 20)
    assert [one.transition for one in told] == [None, "fired", "resolved"]
    assert (told[2].drop, "nights" in told[2].message) == (0.0, False)


def test_an_alert_ends_with_its_evidence() -> None:
    """One night that fell surely, then one that is beyond the limit only by chance: resolved."""
    told = story(recall(max_drop=0.05), [0.5] * 20, [0.3] * 20, uneven(0.06, 0.9))
    assert [one.transition for one in told] == [None, "fired", "resolved"]
    assert told[2].message.endswith("the nights since do not confirm the drop")


def test_each_night_is_read_once_for_all_segments() -> None:
    """The store is read per night and metric, not per segment."""
    past = [a_night(by_channel(web=NOISY, app=NOISY), ago=ago) for ago in (2, 1)]
    tonight, read = a_night(by_channel(web=NOISY, app=NOISY)), list[date]()

    def load(one: Manifest, metric: str) -> MetricScores:
        read.append(one.date)
        return past[0].scores[metric]

    night = NightContext(tonight.manifest, tonight.scores, [one.manifest for one in past], load)
    rules = recall(max_drop=0.05, by="channel", versus="trailing:2")
    evaluate_rules(AlertSettings(rules=tuple(rules)), night)
    assert read == [one.manifest.date for one in past]


# Another judge


def test_nights_of_another_judge_are_never_compared() -> None:
    """A stricter judge is no drop."""
    tonight = a_night(scores(fallen(0.3)), judge="judge-2")
    (found,) = metric_findings(recall(max_drop=0.05), tonight, a_night(scores(NOISY), ago=1))
    assert (found.level, found.drop) == ("ok", None)
    assert "by the same judge" in found.message


def test_a_firing_alert_is_not_resolved_by_another_judge() -> None:
    """Nothing was measured, so nothing is said: the alert stays as it is."""
    rule, before = recall(max_drop=0.05), a_night(scores(NOISY), ago=2)
    fell = a_night(scores(fallen(0.3)), ago=1)
    book, told = advance_states(AlertStates(), hold(rule, fell, before), fell.manifest.date, 7)
    assert [one.transition for one in told if one.kind == "metric"] == ["fired"]
    yesterday = a_night(scores(fallen(0.3)), ago=1, findings=told)
    tonight = a_night(scores(NOISY), judge="judge-2")
    assert metric_findings(rule, tonight, before, yesterday) == []
    book, told = advance_states(book, hold(rule, tonight, before, yesterday), TONIGHT, 7)
    alert = the(told, "metric")
    assert (alert.state, alert.transition) == ("firing", None)
    assert book.states[alert.key].state == "firing"


# Segments


def by_channel(web: Sequence[float], app: Sequence[float]) -> MetricScores:
    """Scores of two channels."""
    return scores([*web, *app], channel=["web"] * len(web) + ["app"] * len(app))


def test_a_drop_and_its_means_are_of_the_same_questions() -> None:
    """Questions that are new tonight lift the mean of all rows, which is named as such."""
    tonight = a_night(scores([*fallen(0.1), *[1.0] * 30]))
    (found,) = metric_findings(recall(max_drop=0.05), tonight, a_night(scores(NOISY), ago=1))
    assert found.level == "breach"
    assert found.message == (
        "context_recall fell from 0.800 to 0.700 over the same 40 questions (2026-11-18); drop "
        "0.10 [0.01, 0.19], allowed 0.05; mean of all rows 0.829"
    )
    assert found.means and found.means.before - found.means.now == pytest.approx(found.drop)
    assert (found.mean, found.baseline) == (pytest.approx(0.829, abs=1e-3), pytest.approx(0.8))


def test_what_is_ok_never_leads_with_a_fall() -> None:
    """A small drop is within its limit, and people read first where the metric is."""
    tonight = a_night(scores(fallen(0.02)))
    (found,) = metric_findings(recall(max_drop=0.05), tonight, a_night(scores(NOISY), ago=1))
    assert found.level == "ok"
    assert found.message == (
        "context_recall went from 0.80 to 0.78 (against 2026-11-18: 40 questions asked on both; "
        "allowed drop 0.05)"
    )


def test_by_holds_the_rule_against_each_value_of_a_tag() -> None:
    """One channel fell, the other did not: two findings, told apart by their keys."""
    tonight = a_night(by_channel(web=fallen(0.3), app=NOISY))
    earlier = a_night(by_channel(web=NOISY, app=NOISY), ago=1)
    found = metric_findings(recall(max_drop=0.05, by="channel"), tonight, earlier)
    assert [(str(one.segment), one.level) for one in found] == [
        ("channel=app", "ok"),
        ("channel=web", "breach"),
    ]
    assert found[1].key == "demo/context_recall/channel=web/max_drop 0.05 versus trailing:7"
    assert found[1].n == 40


def test_a_segment_that_vanished_is_no_data() -> None:
    """A channel that logged every night and is silent tonight is worth a message."""
    tonight = a_night(scores(NOISY, channel=["web"] * 40), shown=["channel"])
    earlier = a_night(by_channel(web=NOISY, app=NOISY), ago=1)
    found = metric_findings(recall(min=0.5, by="channel"), tonight, earlier)
    assert [(str(one.segment), one.level) for one in found] == [
        ("channel=app", "no_data"),
        ("channel=web", "ok"),
    ]


def test_a_segment_that_the_metric_never_applied_to_is_not_watched() -> None:
    """Questions off the topic have no reference: nobody can lose their recall."""
    off = scores([0.5] * 4, channel=["off"] * 4).table.assign(
        status="not_applicable", value=float("nan")
    )
    web = scores(NOISY, channel=["web"] * 40)
    tonight = a_night(replace(web, table=pd.concat([web.table, off], ignore_index=True)))
    (found,) = metric_findings(recall(min=0.5, by="channel"), tonight)
    assert str(found.segment) == "channel=web"


@pytest.mark.parametrize("blank", ["", "  ", "\u200b\u00ad", "\n", "\u3164 \u2800"])
def test_a_blank_value_of_a_tag_is_no_segment(blank: str) -> None:
    """Rows without a value are no channel, and an alert of `channel=` names nothing."""
    tonight = a_night(scores([*NOISY, 0.0], channel=["web"] * 40 + [blank]))
    earlier = a_night(scores([*NOISY, 1.0], channel=["web"] * 40 + [blank]), ago=1)
    rule = recall(min=0.5, by="channel", min_rows=1)
    found = metric_findings(rule, tonight, earlier)
    assert [(str(one.segment), one.level) for one in found] == [("channel=web", "ok")]


def test_by_a_tag_that_no_row_has_is_no_data() -> None:
    """A slip in its name, or logs that lost their tags: nothing is watched, and that is told."""
    (found,) = metric_findings(recall(min=0.5, by="chanel"), a_night(scores(NOISY)))
    assert (found.level, found.n) == ("no_data", 0)
    assert found.message == "context_recall of chanel=(any): 0 rows scored, 20 needed"


@pytest.mark.parametrize("shown", [None, ["region"]])
def test_by_needs_no_segment_to_be_shown(shown: list[str] | None) -> None:
    """A tag of one value, or one that the dashboard leaves out, is held all the same."""
    tonight = a_night(scores([0.1] * 40, channel=["web"] * 40), shown=shown)
    (found,) = metric_findings(recall(min=0.5, by="channel"), tonight)
    assert (found.segment, found.level) == (Segment(tag="channel", value="web"), "breach")


# Health


def test_a_good_night_is_ok_in_all_its_parts() -> None:
    """Every check has a finding, so that people see what was checked."""
    found = hold(recall(min=0.5), a_night(scores(NOISY)))
    assert [(one.kind, one.level) for one in found] == [
        ("no_data", "ok"),
        ("quarantine", "ok"),
        ("judge_failures", "ok"),
        ("cannot_fire", "ok"),
        ("metric", "ok"),
    ]


def test_a_missing_source_is_the_only_finding() -> None:
    """Nothing to score explains everything: no metric rule is held."""
    tonight = a_night(scores([]), rows=0, files=0, problem="no log file at logs/")
    (found,) = hold(recall(min=0.5, max_drop=0.1), tonight, a_night(scores(NOISY), ago=1))
    assert (found.kind, found.level) == ("no_data", "no_data")
    assert found.message == "nothing to score: no log file at logs/"


def test_a_missing_source_does_not_resolve_the_quarantine() -> None:
    """With no row read, the share of bad rows is not 0 but unknown."""
    bad = a_night(scores(NOISY), ago=1, quarantined=50)
    book, _ = advance_states(AlertStates(), hold([], bad), bad.manifest.date, 7)
    missing = a_night(scores([]), rows=0, problem="no log file")
    book, _ = advance_states(book, hold([], missing), TONIGHT, 7)
    assert book.states.get("demo/quarantine", AlertState()).state == "firing"


def test_a_broken_file_is_a_breach_and_the_rest_is_judged() -> None:
    """A night cut short is loud, but its rows were scored."""
    broken = [BrokenFile(file="a.jsonl.gz", line=7, reason="ends in the middle")]
    found = hold(recall(min=0.9), a_night(scores([0.1] * 40), broken=broken))
    assert the(found, "no_data").level == "breach"
    assert "a.jsonl.gz: ends in the middle" in the(found, "no_data").message
    assert the(found, "metric").level == "breach"


@pytest.mark.parametrize(("quarantined", "level"), [(0, "ok"), (5, "ok"), (6, "breach")])
def test_quarantine_is_a_share_of_all_rows(quarantined: int, level: Level) -> None:
    """Up to 5% by default; the commonest reason is told."""
    reasons = {"not JSON": quarantined} if quarantined else {}
    tonight = a_night(
        scores(NOISY), rows=100 - quarantined, quarantined=quarantined, reasons=reasons
    )
    found = the(hold([], tonight), "quarantine")
    assert found.level == level
    assert ("not JSON" in found.message) == bool(quarantined)
    assert the(hold([], tonight, max_quarantined=0.06), "quarantine").level == "ok"


def test_judge_failures_silence_the_metrics_rules_and_no_others() -> None:
    """Where the judge failed on a tenth of the rows, the mean is not to be trusted."""
    failing: list[float | None] = [0.1] * 36 + [None] * 4
    tonight = a_night(scores(failing), scores([0.1] * 40, "context_relevance"))
    rules = [Rule(metric=name, min=0.5) for name in ("context_recall", "context_relevance")]
    found = hold(rules, tonight)
    assert {one.metric: one.level for one in found if one.kind == "judge_failures"} == {
        "context_recall": "breach",
        "context_relevance": "ok",
    }
    assert [one.metric for one in found if one.kind == "metric"] == ["context_relevance"]
    lenient = hold(rules, tonight, max_judge_failures=0.2)
    assert len([one for one in lenient if one.kind == "metric"]) == 2


def test_scores_without_a_mean_are_a_breach() -> None:
    """As an earlier version stored them: no value is missing, and none can be shown."""
    found = the(hold([], a_night(scores([math.nan] * 40))), "judge_failures")
    assert found.level == "breach"
    assert found.message == "context_recall: its 40 scores have no mean"


# Default rules


def test_default_rules_are_those_of_metrics_that_have_rows() -> None:
    """Logs without references are not told every night that recall has no data."""
    relevance, none = scores(NOISY, "context_relevance"), scores([])
    found = metric_findings(None, a_night(relevance, none))
    assert [one.metric for one in found] == ["context_relevance"]


def test_default_rules_stay_for_metrics_that_once_had_rows() -> None:
    """References that are gone tonight are no data, not silence."""
    relevance = scores(NOISY, "context_relevance")
    earlier = a_night(relevance, scores(NOISY), ago=1)
    found = metric_findings(None, a_night(relevance, scores([])), earlier)
    assert {one.metric: one.level for one in found} == {
        "context_relevance": "ok",
        "context_recall": "no_data",
    }


def test_no_rules_means_no_metric_findings() -> None:
    """An empty list is a choice; the night's health is checked all the same."""
    found = hold([], a_night(scores([0.0] * 40)))
    assert {one.kind for one in found} == {"no_data", "quarantine", "judge_failures", "cannot_fire"}


# more is worse, or neither


def zero(share: float, shift: int = 0) -> MetricScores:
    """A night of 400 new questions, some of which have no context."""
    values = [float(number < share * 400) for number in range(400)]
    found = scores(values, "zero_results")
    table = found.table.assign(question=[f"n{shift}-{number}" for number in range(400)])
    return replace(found, table=table, higher_is_better=False)


def test_a_rise_is_a_breach_where_lower_is_better() -> None:
    """Both means are told as they are; the change for the worse counts as a rise."""
    rule = [Rule(metric="zero_results", max_drop=0.01)]
    before = [a_night(zero(0.01, ago), ago=ago) for ago in range(7, 0, -1)]
    (worse,) = metric_findings(rule, a_night(zero(0.06)), *before)
    assert (worse.level, worse.rise) == ("breach", True)
    assert worse.means and (worse.means.before, worse.means.now) == (0.01, 0.06)
    assert worse.message.startswith("zero_results rose from 0.010 to 0.060")
    (better,) = metric_findings(rule, a_night(zero(0.0)), *before)
    assert better.level == "ok"


@pytest.mark.parametrize(("by", "level", "rise"), [(2, "breach", True), (0.5, "breach", False)])
def test_a_change_is_a_breach_in_either_direction_where_neither_is_better(
    by: float, level: Level, rise: bool
) -> None:
    """The larger change counts, as one of two comparisons."""

    def tokens(times: float) -> MetricScores:
        return replace(
            scores([times * (300 + number) for number in range(40)], "context_tokens"),
            higher_is_better=None,
        )

    rule = [Rule(metric="context_tokens", max_drop=30)]
    before = [a_night(tokens(1), ago=ago) for ago in range(7, 0, -1)]
    (found,) = metric_findings(rule, a_night(tokens(by)), *before)
    assert (found.level, found.rise) == (level, rise)
    (usual,) = metric_findings(rule, a_night(tokens(1)), *before)
    assert usual.level == "ok"
