"""Nights whose mix of rows differs are held like against like, by tags or by the weekday."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from ragmetrics.comparison.comparison import measure_sides, mix_notices
from ragmetrics.comparison.sides import align_rows
from ragmetrics.config import AlertSettings
from ragmetrics.dashboard.cards import cards
from ragmetrics.records import Finding, mix_text
from ragmetrics.rules.unwatched_drops import find_unwatched_drops
from ragmetrics.scoring import MetricScores
from tests.fakes.past import TONIGHT, Past, a_night, metric_findings, recall, scores, view

EASY, HARD = 0.9, 0.5
RULE = recall(max_drop=0.05, versus="trailing:7")
ROWS = 200


def traffic(
    ago: int,
    hard: float,
    *,
    lost: float = 0.0,
    metric: str = "context_recall",
    level: float = 0.0,
    **more: str,
) -> MetricScores:
    """Questions that no other night has, so many of them of the hard section, whose rows lost
    something tonight; `more` are tags that all rows have."""
    random, count = np.random.default_rng(ago), round(hard * ROWS)
    sections = ["hard"] * count + ["easy"] * (ROWS - count)
    means = [HARD - lost] * count + [EASY] * (ROWS - count)
    values = np.clip(np.array(means) + level + random.uniform(-0.1, 0.1, ROWS), 0, 1)
    tags = {"section": sections} | {name: [value] * ROWS for name, value in more.items()}
    found = scores(values.tolist(), metric, **tags)
    return replace(found, table=found.table.assign(question=[f"{ago}/{i}" for i in range(ROWS)]))


def untagged(found: MetricScores) -> MetricScores:
    """The same without any tag."""
    return replace(found, table=found.table.drop(columns=["tag:section"]))


def week(hard: Sequence[float] = (0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.6)) -> list[Past]:
    """The seven nights before tonight, oldest first; the first is of tonight's weekday."""
    shares = [hard[-1], *hard[:-1]]
    return [
        a_night(traffic(ago, share), ago=ago)
        for ago, share in zip(range(7, 0, -1), shares, strict=True)
    ]


def the_one(*arguments, **more) -> Finding:
    """The only metric finding."""
    (found,) = metric_findings(*arguments, **more)
    return found


def test_a_night_of_another_mix_is_fine() -> None:
    """Every Saturday most rows are of the hard section, and score as on any Saturday."""
    tonight = a_night(traffic(0, 0.6))
    found = the_one(RULE, tonight, *week())
    assert found.level == "ok"
    assert found.mix_tags == ["section"]
    assert found.mix == pytest.approx((0.6 - 1.8 / 7) * (EASY - HARD), abs=0.01)
    assert found.drop == pytest.approx(0, abs=0.02)
    assert "the mix of tag section alone would lower the mean by 0.138; like" in found.message


def test_without_tags_to_standardise_by_it_would_fire() -> None:
    """`mix_tags: []` holds nights against each other as they are."""
    found = the_one(RULE, a_night(traffic(0, 0.6)), *week(), mix_tags=())
    assert found.level == "breach"
    assert found.mix is None


def test_a_real_drop_under_another_mix_fires() -> None:
    """The hard section lost 0.15 on its own busy day: 0.09 of the mean, which no mix explains."""
    found = the_one(RULE, a_night(traffic(0, 0.6, lost=0.15)), *week())
    assert found.level == "breach"
    assert found.drop == pytest.approx(0.09, abs=0.015)


def test_a_drop_that_an_easier_mix_would_hide_fires() -> None:
    """The mean stands, as there are less hard rows: each is worse than its like before."""
    busy = [a_night(traffic(ago, 0.6), ago=ago) for ago in range(7, 0, -1)]
    found = the_one(RULE, a_night(traffic(0, 0.2, lost=0.0, level=-0.1)), *busy)
    assert found.level == "breach"
    assert found.drop == pytest.approx(0.1, abs=0.02)
    assert "would raise the mean by" in found.message


def test_a_mix_that_no_night_of_the_week_had_is_no_excuse() -> None:
    """The hard section jumps to nine rows of ten: that is news, and not what a Saturday is like."""
    found = the_one(RULE, a_night(traffic(0, 0.9)), *week())
    assert found.level == "breach"
    assert found.mix is not None
    assert found.mix < 0.2


def test_a_first_week_knows_no_usual_mix() -> None:
    """With three nights before, nobody can say which mixes are usual: like is held with like."""
    assert the_one(RULE, a_night(traffic(0, 0.9)), *week((0.2,) * 7)[-3:]).level == "ok"


def test_the_mix_of_the_week_counts_for_one_night_before_too() -> None:
    """`versus: previous` knows the week all the same: Saturday after Friday is no drop."""
    rule = recall(max_drop=0.05, versus="previous")
    assert the_one(rule, a_night(traffic(0, 0.6)), *week()).level == "ok"
    assert the_one(rule, a_night(traffic(0, 0.9)), *week()).level == "breach"


def test_named_tags_are_taken_alone() -> None:
    """A tag that is named is taken, one that is not is no candidate."""
    nights = [a_night(traffic(ago, 0.2, team="a"), ago=ago) for ago in range(7, 0, -1)]
    tonight = a_night(traffic(0, 0.6, team="a"))
    assert the_one(RULE, tonight, *nights, mix_tags=("team",)).level == "breach"
    found = the_one(RULE, tonight, *nights[:3], mix_tags=("section",))
    assert found.mix_tags == ["section"]


def test_within_a_segment_other_tags_count() -> None:
    """A rule by team compares the sections within each team."""
    rule = recall(max_drop=0.05, versus="trailing:7", by="team")
    nights = [
        a_night(traffic(ago, share, team="a"), ago=ago) for ago, share in ((7, 0.6), (6, 0.2))
    ]
    found = the_one(rule, a_night(traffic(0, 0.6, team="a")), *nights)
    assert found.mix_tags == ["section"]
    assert found.level == "ok"


def test_questions_of_both_sides_need_no_mix() -> None:
    """Each is held against itself."""
    nights = [a_night(traffic(1, 0.2), ago=ago) for ago in range(3, 0, -1)]
    found = the_one(RULE, a_night(traffic(1, 0.2)), *nights)
    assert found.paired
    assert found.mix is None


def weeks(count: int, low: float) -> list[Past]:
    """Weeks before tonight without tags, whose nights of tonight's weekday are lower."""
    day = TONIGHT.weekday()
    return [
        a_night(
            untagged(traffic(ago, 0.2, level=-low * ((TONIGHT - timedelta(ago)).weekday() == day))),
            ago=ago,
        )
        for ago in range(7 * count, 0, -1)
    ]


def test_without_tags_a_day_is_held_against_its_like() -> None:
    """Where the last weeks go by the day, tonight is no worse than on such days."""
    found = the_one(RULE, a_night(untagged(traffic(0, 0.2, level=-0.1))), *weeks(4, 0.1))
    assert found.level == "ok"
    assert found.mix_tags == ["weekday"]
    assert "is due to the day of the week" in found.message


def test_without_tags_a_drop_from_its_like_fires() -> None:
    """A low day that is lower than such days are."""
    found = the_one(RULE, a_night(untagged(traffic(0, 0.2, level=-0.2))), *weeks(4, 0.1))
    assert found.level == "breach"
    assert found.drop == pytest.approx(0.1, abs=0.02)


def test_where_no_cycle_shows_days_are_alike() -> None:
    """Without tags and without a cycle, nights are compared as they are."""
    found = the_one(RULE, a_night(untagged(traffic(0, 0.2, level=-0.1))), *weeks(4, 0.0))
    assert found.level == "breach"
    assert found.mix is None


def test_where_tags_explain_the_week_days_are_left_alone() -> None:
    """Four weeks that go by the day because their mix does."""
    day = TONIGHT.weekday()
    nights = [
        a_night(traffic(ago, 0.6 if (TONIGHT - timedelta(ago)).weekday() == day else 0.2), ago=ago)
        for ago in range(28, 0, -1)
    ]
    assert the_one(RULE, a_night(traffic(0, 0.6)), *nights).mix_tags == ["section"]


def test_the_headline_calls_no_mix_a_fall() -> None:
    """A metric without a rule that is lower for its mix alone did not fall."""
    nights = week()
    assert (
        find_unwatched_drops(AlertSettings(rules=()), view(a_night(traffic(0, 0.6)), *nights), [])
        == []
    )
    worse = view(a_night(traffic(0, 0.6, lost=0.2)), *nights)
    (fall,) = find_unwatched_drops(AlertSettings(rules=()), worse, [])
    assert fall.drop == pytest.approx(0.12, abs=0.02)


def test_the_card_of_a_metric_says_what_is_mix() -> None:
    """On the night's page, beside the move."""
    tonight, nights = a_night(traffic(0, 0.6)), week()
    found = the_one(RULE, tonight, *nights)
    manifest = tonight.manifest.model_copy(update={"findings": [found]})
    (card,) = cards(manifest, [night.manifest for night in nights])
    assert card.mix.startswith("like for like: ")
    assert "the mix of tag section" in card.mix


def test_a_comparison_says_what_is_mix() -> None:
    """The means are those there are, the difference is like for like, and a notice tells why."""
    whole, _ = measure_sides([align_rows(traffic(1, 0.2), traffic(0, 0.6))], [])
    (change,) = whole
    assert change.mean_a is not None
    assert change.mean_b is not None
    assert change.mean_b - change.mean_a == pytest.approx(-0.16, abs=0.02)
    assert change.difference == pytest.approx(0, abs=0.02)
    assert change.mix == pytest.approx(-0.16, abs=0.02)
    assert not change.significantly_worse()
    (told,) = mix_notices(whole)
    assert "the mix of tag section" in told


@pytest.mark.parametrize(
    ("fell", "mix", "told"),
    [
        (0.031, 0.027, "0.027 of the fall of 0.031 is due to the mix of tag section"),
        (-0.031, -0.027, "0.027 of the rise of 0.031 is due to the mix of tag section"),
        (0.01, 0.05, "the mix of tag section alone would lower the mean by 0.050"),
        (0.01, -0.05, "the mix of tag section alone would raise the mean by 0.050"),
        (0.01, 0.0004, ""),
        (0.01, None, ""),
    ],
)
def test_the_mix_in_words(fell: float, mix: float | None, told: str) -> None:
    """A part of the move where it is one, else by itself; nothing where it rounds to nothing."""
    assert mix_text(fell, mix, ["section"]) == told


def test_several_tags_and_the_day_in_words() -> None:
    """All that was standardised by is named."""
    told = mix_text(0.2, 0.1, ["weekday", "section", "language"])
    assert told.endswith("is due to the day of the week and the mix of tags language and section")
