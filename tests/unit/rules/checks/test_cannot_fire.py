"""Rules that cannot fire are told every night, and by `doctor`; so is what a metric cannot see."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics.config import AlertSettings, Rule, Settings
from ragmetrics.dashboard import find_night_status
from ragmetrics.pipeline import run_night
from ragmetrics.pipeline.doctor import Check, examine
from ragmetrics.records import Finding, Level
from ragmetrics.rules import Known, why_it_cannot_fire
from ragmetrics.rules.checks.cannot_fire import blind_text, blind_texts
from tests.builders import night_settings
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.past import Past, a_night, hold_rules, scores, the

pytestmark = pytest.mark.usefixtures("without_pages")

RECALL = "context_recall"
SMALL = [0.0, 0.14] * 20
"""Forty questions with mean 0.07."""


def of_kind(tonight: Past, *earlier: Past, **limits: Any) -> Finding:
    """What a night with one rule says of rules that cannot fire."""
    settings = AlertSettings(rules=(Rule(metric=RECALL, **limits),))
    return the(hold_rules(settings, tonight, earlier), "cannot_fire")


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"max_drop": 0.1}, "max_drop 0.1 of context_recall cannot fire: the mean is 0.070"),
        ({"max_drop": 0.05}, ""),
        ({"max_drop": 0.1, "max_share": 0.25}, ""),
        ({"min": 0.01}, ""),
        ({"min": 0.01, "max_drop": 0.1}, "max_drop 0.1 of context_recall cannot fire"),
        (
            {"max_drop": 0.02, "by": "section", "min_rows": 30},
            "max_drop 0.02 of context_recall by section cannot fire: it needs 30 scored rows of "
            "each section, and no night had more than 20",
        ),
    ],
)
def test_a_night_names_the_rules_that_cannot_fire(limits: Mapping[str, Any], why: str) -> None:
    """A limit as large as all that can fall, or more rows than a night has; other limits of the
    same rule stay silent.
    """
    tags = {"section": ["billing", "travel"] * 20}
    found = of_kind(
        a_night(scores([0.0] * 40, **tags)), a_night(scores(SMALL, **tags), ago=1), **limits
    )
    assert (found.level, found.severity) == ("breach" if why else "ok", "warning")
    assert why in found.message


def test_a_rule_without_data_is_told_once() -> None:
    """It fires for that already."""
    found = of_kind(a_night(scores(SMALL[:10])), max_drop=0.1)
    assert found.level == "ok"


@pytest.mark.parametrize(
    ("detects", "says"),
    [
        (0.5, "smallest detectable drop 0.5, mean 0.476"),
        (88.0, "even a fall from 0.476 to the lowest value may go unseen"),
    ],
)
def test_no_drop_is_named_that_is_beyond_the_scale(detects: float, says: str) -> None:
    """With two comparable nights the smallest detectable drop can be 88."""
    text = blind_text(RECALL, 0.476, detects, ())
    assert text == (
        f"{RECALL} cannot show a regression here: {says}; try more rows a night or another judge"
    )


@given(
    mean=st.floats(0.0, 1.0),
    max_drop=st.floats(0.0, 0.99),
    share=st.none() | st.floats(0.01, 0.99),
)
def test_a_drop_rule_cannot_fire_exactly_where_the_loss_of_everything_is_allowed(
    mean: float, max_drop: float, share: float | None
) -> None:
    """Whatever the numbers: a night at 0 is then no drop of more than the limit."""
    rule = Rule(metric=RECALL, max_drop=max_drop, max_share=share)
    dead = why_it_cannot_fire(rule, Known(mean=mean))
    assert bool(dead) == (mean <= rule.allowed_drop(mean))
    assert not why_it_cannot_fire(rule.model_copy(update={"metric": "house"}), Known(mean=mean))


@pytest.mark.parametrize(("level", "said"), [("ok", True), ("suspect", True), ("breach", False)])
def test_a_metric_that_fell_tonight_was_seen(level: Level, said: bool) -> None:
    """A drop to 0 fires, though it makes the smallest detectable drop larger than the mean."""
    found = Finding(
        key="demo/context_recall",
        kind="metric",
        level=level,
        rule="drop",
        message="fell",
        metric=RECALL,
        baseline=0.2,
        mde=0.29,
        sees=False,
    )
    assert bool(blind_texts([found])) == said


def settings(folder: Path, *rules: Mapping[str, Any]) -> Settings:
    """Settings with some rules."""
    return night_settings(folder, logs="logs/{date}.jsonl", metrics=[RECALL], rules=list(rules))


def night(folder: Path, chosen: Settings, ago: int, good: float) -> str:
    """A night with so large a share of good rows; its headline."""
    day = NIGHT - timedelta(ago)
    write_jsonl(folder / "logs" / f"{day}.jsonl", make_rows(60, good=good, night=day))
    return find_night_status(run_night(chosen, day).manifest).words


def of_rules(chosen: Settings) -> Check:
    """What `doctor` says of the rules."""
    return next(one for one in examine(chosen, NIGHT) if one.name == "alert rules")


def test_doctor_and_the_night_say_the_same(tmp_path: Path) -> None:
    """A rule that allows a drop of 0.3 where recall is 0.1: an alert, and a warning of doctor. The
    rule that can fire ends it.
    """
    dead, able = (settings(tmp_path, {"metric": RECALL, "max_drop": drop}) for drop in (0.3, 0.05))
    assert "first nights will show" in of_rules(dead).text
    assert night(tmp_path, dead, 1, 0.1) == "1 alert firing"
    checked = of_rules(dead)
    assert checked.state == "warning"
    assert "max_drop 0.3 of context_recall cannot fire: the mean is 0.1" in checked.text
    assert night(tmp_path, able, 0, 0.1) == "fine"


def test_doctor_knows_what_is_missing_for_good(tmp_path: Path) -> None:
    """A pinned run that the store lacks, a build that nothing names, a tag that no row has, more
    rows than a night has, and a share that no night exceeds.
    """
    plain = settings(tmp_path, {"metric": RECALL, "max_drop": 0.05})
    night(tmp_path, plain, 0, 0.9)
    rules = [
        {"metric": RECALL, "max_drop": 0.05, "versus": "pinned:0d3f9a77be"},
        {"metric": RECALL, "max_drop": 0.05, "versus": "serving"},
        {"metric": RECALL, "max_drop": 0.05, "by": "section"},
        {"metric": RECALL, "min": 0.5, "min_rows": 500},
    ]
    chosen = settings(tmp_path, *rules)
    alerts = chosen.alerts.model_copy(update={"max_stale": 1.0, "checks": {"quarantine": 1.0}})
    found = list(examine(chosen.model_copy(update={"alerts": alerts}), NIGHT))
    text = " ".join(one.text for one in found if one.state == "warning")
    for reason in (
        "there is no run 0d3f9a77be in the store",
        "the serving index build is not known",
        "no row has the tag section",
        "it needs 500 scored rows, and no night had more than 60",
        "max_quarantined: 1 cannot fire",
        "max_stale: 1 cannot fire",
    ):
        assert reason in text


def test_a_small_mean_whose_fall_to_0_is_found_is_seen() -> None:
    """One answer in ten has a score: drops by chance are as large as the mean, a fall to 0 is
    significant all the same.
    """
    for rows in (30, 100):
        nights = [
            a_night(scores([0.7 if n % 10 == ago else 0.0 for n in range(rows)]), ago=ago)
            for ago in range(8)
        ]
        settings = AlertSettings(rules=(Rule(metric=RECALL, max_drop=0.1, max_share=0.5),))
        findings = hold_rules(settings, nights[0], nights[1:])
        (found,) = [finding for finding in findings if finding.kind == "metric"]
        assert found.mde is not None and found.baseline is not None
        assert found.mde > found.baseline == pytest.approx(0.07)
        assert found.sees
