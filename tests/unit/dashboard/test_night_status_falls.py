"""Falls: what got significantly worse in a metric that no rule watches, and what is no news."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragmetrics.config import AlertSettings
from ragmetrics.dashboard.night_status import find_night_status
from ragmetrics.pipeline import run_night
from ragmetrics.records import UnwatchedDrop, unwatched_drop_text
from ragmetrics.rules import NightContext, evaluate_rules
from ragmetrics.rules.unwatched_drops import find_unwatched_drops
from tests.builders import night_settings
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.nights import finding
from tests.fakes.past import NOISY, Past, a_night, fallen, recall, scores, uneven

UNWATCHED = AlertSettings(rules=())


def falls(
    tonight: Past, *earlier: Past, settings: AlertSettings = UNWATCHED
) -> list[UnwatchedDrop]:
    """The falls of tonight after its rules; earlier nights are given oldest first."""
    by_date = {one.manifest.date: one for one in earlier}
    night = NightContext(
        tonight.manifest,
        tonight.scores,
        [one.manifest for one in earlier],
        lambda one, metric: by_date[one.date].scores[metric],
    )
    return find_unwatched_drops(settings, night, evaluate_rules(settings, night))


def week(values: Sequence[float] = NOISY, metric: str = "context_recall") -> list[Past]:
    """Three good nights."""
    return [a_night(scores(values, metric), ago=ago) for ago in (3, 2, 1)]


def test_a_sure_drop_without_a_rule_is_found() -> None:
    """With its means, its interval, and what it was compared with."""
    (found,) = falls(a_night(scores(fallen(0.3))), *week())
    assert (found.metric, found.label, found.questions) == ("context_recall", "3 nights before", 40)
    assert found.paired
    assert (found.before, found.now, found.drop) == pytest.approx((0.8, 0.5, 0.3))
    assert found.low > 0


def test_an_alert_tells_its_own_metric() -> None:
    """What fires or is pending is not told a second time."""
    watched = AlertSettings(rules=tuple(recall(max_drop=0.1)))
    assert falls(a_night(scores(fallen(0.3))), *week(), settings=watched) == []


@pytest.mark.parametrize("limits", [{"min": 0.1}, {"max_drop": 0.5, "by": "section"}])
def test_a_rule_on_something_else_watches_no_drop(limits: dict[str, Any]) -> None:
    """A floor far below, or a tag that no row has: the night is not fine for that."""
    settings = AlertSettings(rules=tuple(recall(**limits)))
    assert [fall.metric for fall in falls(a_night(scores(fallen(0.3))), *week(), settings=settings)]


def test_a_metric_whose_judge_failed_is_left_out() -> None:
    """The failures have a finding of their own, and may be why the mean is low."""
    broken = scores([*fallen(0.3)[:30], *[None] * 10])
    assert falls(a_night(broken), *week()) == []


@pytest.mark.parametrize("now", [NOISY, fallen(0.04), fallen(-0.3), uneven(0.1), fallen(0.3)[:19]])
def test_what_is_not_sure_or_not_much_is_no_news(now: list[float]) -> None:
    """No drop, a small one, a rise, one that may be chance, or too few rows."""
    before = [0.5] * 20 if now == uneven(0.1) else NOISY
    assert falls(a_night(scores(now)), *week(before)) == []


def test_the_first_night_has_no_falls() -> None:
    """There is no night by the same judge to compare with."""
    assert falls(a_night(scores(NOISY))) == []
    assert falls(a_night(scores(fallen(0.3)), judge="other"), *week()) == []


def test_many_metrics_do_not_cry_wolf() -> None:
    """One doubtful drop is told where it is alone; among ten metrics such a one is to be
    expected.
    """
    doubtful, names = uneven(0.14), [f"metric_{i}" for i in range(9)]
    steady = [scores([0.5] * 20, name) for name in names]
    alone = falls(a_night(scores(doubtful)), *week([0.5] * 20))
    before = a_night(scores([0.5] * 20), *steady, ago=1)
    assert [fall.metric for fall in alone] == ["context_recall"]
    assert falls(a_night(scores(doubtful), *steady), before) == []


def test_a_drop_is_told_among_the_six_default_metrics() -> None:
    """A third of 60 rows without contexts, p about 0.005: significant at 5% over six metrics, where
    1% over all of them called the night fine.
    """
    random = np.random.default_rng(29)
    names = ["context_recall", *(f"metric_{i}" for i in range(5))]

    def night(ago: int, dead: int = 0) -> Past:
        values = random.binomial(1, 0.6, (6, 60)).astype(float)
        values[0, :dead] = 0
        tables = [scores(list(own), name) for own, name in zip(values, names, strict=True)]
        for scored in tables:
            scored.table["question"] = [f"n{ago}q{n}" for n in range(60)]
        return a_night(*tables, ago=ago)

    found = falls(night(0, dead=20), *(night(ago) for ago in range(7, 0, -1)))
    assert [fall.metric for fall in found] == ["context_recall"]
    assert found[0].low > 0


def story(*nights: Sequence[float], settings: AlertSettings = UNWATCHED) -> list[list[str]]:
    """The metrics that are told to have fallen, night by night; each night knows those before."""
    past: list[Past] = []
    told = []
    for number, values in enumerate(nights):
        night = a_night(scores(values), ago=len(nights) - number)
        found = falls(night, *past, settings=settings)
        past.append(replace(night, manifest=night.manifest.model_copy(update={"falls": found})))
        told.append([fall.metric for fall in found])
    return told


GOOD, BAD = NOISY, fallen(0.3)
RECALL = ["context_recall"]


def test_a_drop_lasts_until_the_metric_is_back() -> None:
    """On its second and third day, and after a week, in which its nights would have become what it
    is compared with. The first good night ends it.
    """
    told = story(*[GOOD] * 7, *[BAD] * 12, GOOD, GOOD)
    assert told == [[]] * 7 + [RECALL] * 12 + [[]] * 2


def test_a_better_night_that_may_be_chance_does_not_end_a_drop() -> None:
    """Drops of 0.3 and then of 0.1 whose p value is above the level of a first night."""
    before = [0.5] * 20
    assert story(before, before, uneven(0.1)) == [[]] * 3, "not enough for a first night"
    assert story(before, before, [0.2] * 20, uneven(0.1))[2:] == [RECALL] * 2
    assert story(before, before, [0.2] * 20, before)[2:] == [RECALL, []]


def test_a_drop_that_lasts_is_compared_with_the_nights_before_it() -> None:
    """Its means, its label and its first night; after 90 days without one of them it is usual."""
    bad = a_night(scores(BAD), ago=1)
    told = falls(bad, *week()[:2])
    fell = replace(bad, manifest=bad.manifest.model_copy(update={"falls": told}))
    (again,) = falls(a_night(scores(BAD)), *week()[:2], fell)
    assert again.before == pytest.approx(0.8)
    assert again.since == bad.manifest.date
    assert "(no alert rule; not back since 2026-11-18)" in unwatched_drop_text(again)
    assert falls(a_night(scores(BAD)), fell) == []


def test_a_night_with_the_log_of_an_earlier_one_ends_no_drop() -> None:
    """Its rows are good ones of a week before, and say nothing of the night."""
    bad = a_night(scores(BAD), ago=2)
    told = falls(bad, *week()[:1])
    fell = replace(bad, manifest=bad.manifest.model_copy(update={"falls": told}))
    log = finding(None, level="no_data", key="demo/stale_log", kind="stale_log")
    copied = a_night(scores(GOOD), ago=1, findings=[log])
    (again,) = falls(a_night(scores(BAD)), *week()[:1], fell, copied)
    assert again.since == bad.manifest.date


def test_a_drop_within_its_rule_is_no_fine_night() -> None:
    """The rule allows 0.5, and the metric lost 0.3: no alert, and it is told while it lasts."""
    allowed = AlertSettings(rules=tuple(recall(max_drop=0.5)))
    told = story(*[GOOD] * 3, BAD, BAD, GOOD, settings=allowed)
    assert told == [[]] * 3 + [RECALL] * 2 + [[]]
    (fall,) = falls(a_night(scores(BAD)), *week(), settings=allowed)
    told = unwatched_drop_text(fall)
    assert told.startswith("context_recall fell by 0.3")
    assert told.endswith("(within its alert rule)")


def test_what_an_alert_saw_is_low_after_it_ended() -> None:
    """A `min` that fired is over, and the metric is significantly below the nights before it."""
    bad = a_night(scores(fallen(0.5)), ago=1)
    low = bad.manifest.model_copy(
        update={"findings": [finding("context_recall", level="breach", limit=0.4)]}
    )
    better = a_night(scores(fallen(0.2)))
    (fall,) = falls(better, *week()[:2], replace(bad, manifest=low))
    assert (fall.since, fall.before) == (low.date, pytest.approx(0.8))


def test_a_small_mean_has_a_small_drop() -> None:
    """A mean of 0.04 that falls to 0: the limit of 0.05 would be more than all that can fall."""
    before = [0.0, 0.08] * 30
    assert story(before, before, [0.0] * 60)[2] == RECALL


def test_where_lower_is_better_a_rise_is_worse() -> None:
    """No rule can watch such a metric at all."""
    noise = "noise_sensitivity"

    def night(values: list[float], ago: int = 0) -> Past:
        return a_night(replace(scores(values, noise), higher_is_better=False), ago=ago)

    (found,) = falls(night(fallen(-0.1)), night(NOISY, ago=1))
    assert (found.metric, found.label) == (noise, "2026-11-18")
    assert (found.before, found.now, found.drop) == pytest.approx((0.8, 0.9, 0.1))
    assert falls(night(fallen(0.3)), night(NOISY, ago=1)) == []


def test_a_night_is_not_fine_for_want_of_a_rule(tmp_path: Path) -> None:
    """A dataset with one rule: what fell beside it is in the manifest and in the headline."""
    before = NIGHT - timedelta(1)
    for day, good in ((before, 0.9), (NIGHT, 0.5)):
        rows = make_rows(60, good=good, night=day)
        write_jsonl(tmp_path / "logs" / f"{day}.jsonl", rows)
    settings = night_settings(
        tmp_path,
        logs="logs/{date}.jsonl",
        metrics=["context_relevance", "context_recall"],
        rules=[{"metric": "context_relevance", "min": 0.01}],
    )
    first, second = (run_night(settings, day).manifest for day in (before, NIGHT))
    assert find_night_status(first).state == "ok"
    assert [fall.metric for fall in second.falls] == ["context_relevance", "context_recall"]
    told = find_night_status(second)
    assert told.state == "fell"
    assert told.words == "no rule fired; 2 metrics got significantly worse"
    page = (tmp_path / "store" / "dashboard" / "index.html").read_text()
    assert "fine." not in page.split("</h1>")[0]
