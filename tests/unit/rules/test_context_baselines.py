"""What a drop is measured against: a pinned run, or the nights of the index build that serves."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from ragmetrics.comparison import find_serving, save_gate
from ragmetrics.config import Rule, make_settings
from ragmetrics.records import Gate, JudgeInfo, Level, Source, Verdict
from ragmetrics.storage import Files, Runs
from tests.fakes.nights import finding
from tests.fakes.past import (
    NOISY,
    TONIGHT,
    Past,
    a_night,
    fallen,
    metric_findings,
    recall,
    scores,
    story,
    view,
)


def pinned(run: str = "good", **limits: float) -> list[Rule]:
    """A rule against one run."""
    return recall(max_drop=0.05, versus=f"pinned:{run}", **limits)


def served(build: str, ago: int, by: float = 0.0) -> Past:
    """A night served by one index build."""
    return a_night(scores(fallen(by), index_build=build), ago=ago)


# what the fold says


@pytest.mark.parametrize("level", ["breach", "no_data"])
def test_whether_an_alert_fired_is_what_the_fold_says(level: Level) -> None:
    """Whatever state a manifest recorded; lack of data fires, and judges nothing."""
    breach = finding("alert", level).model_copy(update={"state": "ok"})
    past = a_night(scores(NOISY), ago=1, findings=[breach])
    night = view(a_night(scores(NOISY)), past)
    assert night.was_firing("alert/min") is (level == "breach")
    assert night.incident_start("alert/min") == (past.manifest.date if level == "breach" else None)
    assert not replace(night, states={}).was_firing("alert/min")


def test_too_few_rows_do_not_end_an_incident_that_was_judged() -> None:
    """A breach, then a night with too few rows: it fires as judged, since the breach."""
    nights = [
        a_night(scores(NOISY), ago=ago, findings=[finding("alert", level)])
        for ago, level in ((3, "ok"), (2, "breach"), (1, "no_data"))
    ]
    night = view(a_night(scores(NOISY)), *nights)
    assert night.was_firing("alert/min")
    assert night.incident_start("alert/min") == nights[1].manifest.date


def test_a_pending_incident_has_at_most_so_many_nights() -> None:
    """Suspects that wait for evidence may be pending for weeks; the newest ones count."""
    waiting = finding("alert", "suspect", for_nights=None)
    nights = [a_night(scores(NOISY), ago=ago, findings=[waiting]) for ago in (4, 3, 2, 1)]
    night = view(a_night(scores(NOISY)), *nights)
    assert night.incident_start("alert/min", 2) == nights[2].manifest.date
    assert night.incident_start("alert/min", 0) is None
    assert night.incident_start("alert/min") == nights[0].manifest.date


# pinned


def test_a_pinned_run_is_the_measure_however_old() -> None:
    """The nights since fell little by little; against the run of the release it is a drop."""
    release = a_night(scores(NOISY), ago=90, run="good")
    slow = [a_night(scores(fallen(by)), ago=ago) for ago, by in ((3, 0.04), (2, 0.08), (1, 0.12))]
    (found,) = metric_findings(pinned(), a_night(scores(fallen(0.16))), *slow, runs=[release])
    assert (found.level, found.drop) == ("breach", pytest.approx(0.16))
    assert found.baseline_label == "run good of 2026-08-21"
    assert found.rule == "context_recall: drop of more than 0.05 against run good"


def test_a_pinned_run_need_not_speak_for_its_night() -> None:
    """A rerun took the place of it on its night; by its name it is still known."""
    release, rerun = a_night(scores(NOISY), ago=1, run="good"), a_night(scores(fallen(0.2)), ago=1)
    (found,) = metric_findings(pinned(), a_night(scores(fallen(0.2))), rerun, runs=[release])
    assert (found.level, found.baseline) == ("breach", pytest.approx(0.8))


def test_an_unknown_run_is_no_data() -> None:
    """Never ok: the rule watches nothing. The message says where the names of runs are."""
    (found,) = metric_findings(
        pinned("gone"), a_night(scores(NOISY)), a_night(scores(NOISY), ago=1)
    )
    assert found.level == "no_data"
    assert "no run gone in the store: `versus: pinned:gone` needs the name" in found.message


def test_a_run_by_another_judge_is_no_data() -> None:
    """It will never compare, unlike a night before: somebody has to pin another run."""
    release = a_night(scores(NOISY), ago=9, run="good", judge="judge-2")
    (found,) = metric_findings(pinned(), a_night(scores(NOISY)), runs=[release])
    assert found.level == "no_data"
    assert "pin a run that was scored in the same way" in found.message


def test_a_pinned_run_is_one_baseline_for_all_nights_of_a_spell() -> None:
    """So the rule makes fewer comparisons than one whose baseline moves on, and p is less."""
    release, tonight = a_night(scores(NOISY), ago=1, run="good"), a_night(scores(fallen(0.1)))
    rules = [*pinned(**{"for": 3}), *recall(max_drop=0.05, **{"for": 3})]
    one = [metric_findings([rule], tonight, release)[0].p_value for rule in rules]
    assert one[0] == pytest.approx((one[1] or 0) * 3 / 5)


# serving


def test_serving_is_compared_with_the_nights_of_the_promoted_build() -> None:
    """Another build answered since, without having been promoted: it is no measure."""
    earlier = [served("b1", 3), served("b2", 2, by=0.2), served("b2", 1, by=0.2)]
    tonight = served("b2", 0, by=0.2)
    rule = recall(max_drop=0.05, versus="serving")
    (found,) = metric_findings(rule, tonight, *earlier, serving=["b1", "b0"])
    assert (found.level, found.baseline) == ("breach", pytest.approx(0.8))
    assert found.baseline_label == "index build b1"


def test_a_build_without_nights_is_preceded_by_the_one_it_was_held_against() -> None:
    """On the first night of a promoted build there is something to compare it with."""
    earlier = [served("b1", 2), served("b1", 1)]
    rule = recall(max_drop=0.05, versus="serving")
    (found,) = metric_findings(rule, served("b2", 0, by=0.2), *earlier, serving=["b2", "b1"])
    assert (found.level, found.baseline_label) == ("breach", "index build b1")


def test_of_a_night_with_two_builds_only_the_serving_rows_count() -> None:
    """A build on trial answered half of the questions, badly."""
    both = scores([*NOISY, *fallen(0.5)])
    both.table["index_build"] = ["b1"] * 40 + ["trial"] * 40
    tonight = a_night(scores([*NOISY, *NOISY], index_build="b1"))
    rule = recall(max_drop=0.05, versus="serving")
    (found,) = metric_findings(rule, tonight, a_night(both, ago=1), serving=["b1"])
    assert (found.level, found.baseline) == ("ok", pytest.approx(0.8))


def test_without_gates_the_newest_night_says_which_build_serves() -> None:
    """The build of most of its rows."""
    earlier = [served("b1", 2, by=0.3), served("b2", 1)]
    rule = recall(max_drop=0.05, versus="serving")
    (found,) = metric_findings(rule, served("b2", 0, by=0.2), *earlier)
    assert (found.level, found.baseline_label) == ("breach", "index build b2")


def test_nobody_knows_what_serves_where_no_row_names_a_build() -> None:
    """That does not mend itself: no data, with what is missing."""
    rule = recall(max_drop=0.05, versus="serving")
    (found,) = metric_findings(rule, a_night(scores(NOISY)), a_night(scores(NOISY), ago=1))
    assert found.level == "no_data"
    assert "the serving index build is not known: no gate promoted one" in found.message


def test_the_first_night_of_all_waits() -> None:
    """There is nothing to compare with yet, as with any other baseline."""
    rule = recall(max_drop=0.05, versus="serving")
    (found,) = metric_findings(rule, served("b1", 0), serving=["b1"])
    assert (found.level, "not compared yet" in found.message) == ("ok", True)


def test_a_bad_build_keeps_firing_against_the_one_before() -> None:
    """Its own nights are those of a firing spell, and no measure."""
    nights = [
        scores(fallen(by), index_build=build)
        for build, by in (("b1", 0.0), ("b1", 0.0), ("b2", 0.2), ("b2", 0.2), ("b2", 0.2))
    ]
    told = story(recall(max_drop=0.05, versus="serving"), *nights)
    assert [one.state for one in told] == ["ok", "ok", "firing", "firing", "firing"]


# The store


def test_a_run_is_found_by_its_name(files: Files) -> None:
    """In whatever night; one that is not there is None."""
    for ago, run in ((1, "aaa"), (30, "bbb")):
        Runs(files).save(a_night(ago=ago, run=run).manifest)
    found = Runs(files).named("bbb")
    assert found is not None
    assert (found.run, (TONIGHT - found.date).days) == ("bbb", 30)
    assert Runs(files).named("bb") is None


def a_gate(build: str, serving: str | None, verdict: Verdict, day: int, **more: str) -> Gate:
    """A verdict of a day in November."""
    moment = datetime(2026, 11, day, 12, tzinfo=UTC)
    return Gate(
        **{"dataset": "demo", **more},
        build=build,
        serving=serving,
        verdict=verdict,
        reasons=[],
        logs="logs",
        judge=JudgeInfo(name="judge", fingerprint="judge"),
        source=Source(logs="logs", files=1, rows=100),
        started_at=moment,
        finished_at=moment,
    )


@pytest.mark.parametrize(
    ("day", "builds"), [(9, []), (10, ["b1"]), (13, ["b1"]), (15, ["b3", "b1"])]
)
def test_the_build_that_serves_is_the_last_promoted_by_that_day(
    files: Files, day: int, builds: list[str]
) -> None:
    """One that was held does not serve, nor one of another data set; with what it replaced."""
    save_gate(files, a_gate("b1", None, "promote", 10))
    save_gate(files, a_gate("b2", "b1", "hold", 12))
    save_gate(files, a_gate("b3", "b1", "promote", 15))
    save_gate(files, a_gate("x1", "x0", "promote", 14, dataset="other"))
    assert find_serving(files, "demo", date(2026, 11, day)) == builds


# Settings


@pytest.mark.parametrize("versus", ["previous", "trailing:7", "pinned:0d3f9a77be", "serving"])
def test_what_a_rule_may_be_versus(versus: str) -> None:
    """The four of the design."""
    rules = [{"metric": "context_recall", "max_drop": 0.05, "versus": versus}]
    assert make_settings({"alerts": {"rules": rules}}).alerts.rules
