"""A judge that moves from night to night: whose verdicts carry it, and what is said of it."""

from __future__ import annotations

import io
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragmetrics.cli.gate import print_gate
from ragmetrics.cli.table import make_console
from ragmetrics.comparison import compare_with_night_before
from ragmetrics.comparison.gate.measured_drop import further_to_promote, measure
from ragmetrics.comparison.gate.question_scores import find_movements
from ragmetrics.comparison.gate.verdict import VerdictEvidence, weigh
from ragmetrics.config import make_settings
from ragmetrics.dashboard.cards import cards
from ragmetrics.dashboard.pages.night import night_page
from ragmetrics.records import JudgeMovement, Manifest, Move, movement_text
from ragmetrics.records.judging import Usage
from ragmetrics.rules.judge_movement import (
    carried_movement,
    find_movement,
    level_error,
    moving_share,
    newest_movement,
)
from ragmetrics.stats import LevelError
from ragmetrics.storage import Files, Runs
from ragmetrics.storage.run_index import outline
from research.judge_movement import fired
from research.moving_world import METRICS, Golden, World
from tests.fakes.gated import gate, metric_verdict
from tests.fakes.nights import night
from tests.fakes.page_writing import write_build

RELEVANCE = "context_relevance"
MOVES = JudgeMovement(sd=0.012, nights=14, freedom=8.7)


def judged(number: int, new: int = 200, kept: int = 0, **change: Any) -> Manifest:
    """A night whose remote judge gave so many verdicts anew."""
    usage = Usage(requests=new, answered_from_store=kept)
    return night(number, usage_by_metric={RELEVANCE: {"gpt": usage}}, **change)


def golden(sd: float, seed: int = 1) -> Golden:
    """Made scores of 120 questions on four runs."""
    random = np.random.default_rng(seed)
    base = random.uniform(0.3, 0.9, (120, 1))
    scores = {name: np.clip(base + random.normal(0, 0.05, (120, 4)), 0, 1) for name in METRICS}
    return Golden(scores, sd, random)


@cache
def stores(sd: float, knows: bool) -> list[tuple[World, Golden]]:
    """A store after no night, after one, and so on: made once, as far as a test asks."""
    return [(World(knows=knows, max_drop=0.03), golden(sd))]


def store(sd: float, nights: int, *, knows: bool = True) -> tuple[World, Golden]:
    """Nights on which nothing changed, and what makes more of them."""
    known = stores(sd, knows)
    while len(known) <= nights:
        world, made = _copied(*known[-1])
        world.add(made.night(), ruled=False)
        known.append((world, made))
    return _copied(*known[nights])


def _copied(world: World, made: Golden) -> tuple[World, Golden]:
    own = replace(world, nights=list(world.nights), scores=dict(world.scores))
    return own, replace(made, random=deepcopy(made.random))


# Before it is known


def test_the_first_nights_of_a_remote_judge_fire_on_large_drops_alone() -> None:
    """A fall of 0.05 over the same questions may be the judge's; one of 0.3 is not."""
    world, made = store(0.0, 3)
    assert not fired(world.would_be(made.night(0.1)))
    assert fired(world.would_be(made.night(0.6))) == set(METRICS)


# Whose verdicts carry it


def test_verdicts_that_were_given_anew_by_a_remote_judge_move() -> None:
    """Not those that were kept, nor a judge's on this machine, nor what no judge is asked for."""
    assert moving_share(judged(0, new=50, kept=150), RELEVANCE) == 0.25
    assert moving_share(judged(0, new=50, kept=150), "context_precision") == 0.25, "its grades"
    assert moving_share(judged(0), "hit_rate") == 0
    assert moving_share(night(0), RELEVANCE) == 0, "nothing was asked over a network"
    nothing = {RELEVANCE: {"embeddings": Usage(requests=7)}}
    assert moving_share(night(0, usage_by_metric=nothing), RELEVANCE) == 0


def test_what_a_metric_shares_counts_as_the_whole_night() -> None:
    """Shared requests stand with the metric that asked first."""
    assert moving_share(judged(0, new=50, kept=150), "faithfulness") == 0.25


def test_a_run_in_place_of_another_has_its_nights_verdicts() -> None:
    """They were kept some hours ago, and are of this night's judge."""
    assert moving_share(judged(0, new=10, kept=190, supersedes="first"), RELEVANCE) == 1


def test_a_difference_carries_the_movement_of_both_sides() -> None:
    """Of one night each sqrt(2), of seven nights before sqrt(8/7)."""
    assert carried_movement(RELEVANCE, [judged(0)], [judged(1)]) == pytest.approx(2**0.5)
    week = [judged(number) for number in range(7)]
    assert carried_movement(RELEVANCE, week, [judged(7)]) == pytest.approx((8 / 7) ** 0.5)


def test_what_was_judged_on_one_day_carries_none() -> None:
    """Two builds of one gate, two index builds of one night, a backfill against itself."""
    one, other = judged(0), judged(0, run="other")
    assert carried_movement(RELEVANCE, [one], [other]) == 0
    assert level_error(MOVES, RELEVANCE, [one], [other]) is None


def test_verdicts_that_are_used_again_carry_none() -> None:
    """The questions are as they were, to the last digit; half of them anew carry half."""
    kept = judged(1, new=0, kept=200)
    assert carried_movement(RELEVANCE, [judged(0)], [kept]) == 0
    half = judged(1, new=100, kept=100)
    assert carried_movement(RELEVANCE, [judged(0)], [half]) == pytest.approx(0.5**0.5)
    level = level_error(MOVES, RELEVANCE, [judged(0)], [half])
    assert level == LevelError(pytest.approx(0.012 * 0.5**0.5), 8.7)


def test_verdicts_that_were_kept_before_are_of_one_earlier_day() -> None:
    """Seven nights that used the same verdicts say of the judge what one does."""
    before = [judged(number, new=0, kept=200) for number in range(7)]
    assert carried_movement(RELEVANCE, before, [judged(7)]) == pytest.approx(2**0.5)


# What is known of it


def test_a_moving_judge_is_found_from_the_records_of_the_nights() -> None:
    """By the moves that each night keeps; the record of the night says it."""
    world, made = store(0.02, 22)
    (relevance,) = (one for one in world.add(made.night()).metrics if one.metric == RELEVANCE)
    assert relevance.movement is not None
    assert relevance.movement.nights == 22
    assert relevance.movement.sd == pytest.approx(0.02, rel=0.5)
    assert relevance.movement.freedom == pytest.approx(14)


def test_a_judge_on_this_machine_has_none() -> None:
    """Nothing is estimated, and nothing widened."""
    world, made = store(0.0, 12, knows=False)
    assert {metric.movement for metric in world.add(made.night()).metrics} == {None}


def test_too_few_nights_are_told_as_such() -> None:
    """Seven say nothing, eight do."""
    world, made = store(0.02, 7)
    found = world.add(made.night()).metrics[0].movement
    assert found is not None
    assert (found.sd, found.nights) == (None, 7)
    assert movement_text(found) == (
        "this judge's movement from night to night is not known yet (7 of 8 nights)"
    )
    known = world.add(made.night()).metrics[0].movement
    assert known is not None
    assert known.sd is not None


def test_nights_that_were_judged_on_one_day_tell_nothing() -> None:
    """A backfill of four weeks in one afternoon is one day of the judge."""
    world, made = store(0.02, 12)
    at = world.nights[0].started_at
    world.nights = [one.model_copy(update={"started_at": at}) for one in world.nights]
    found = world.add(made.night()).metrics[0].movement
    assert found is not None
    assert (found.sd, found.nights) == (None, 1)


def test_moves_against_a_run_that_was_superseded_do_not_count() -> None:
    """They are held against numbers that no longer stand."""
    world, made = store(0.02, 12)
    world.nights = [
        manifest.model_copy(
            update={"moves": [m.model_copy(update={"run": "gone"}) for m in manifest.moves]}
        )
        for manifest in world.nights
    ]
    found = world.add(made.night()).metrics[0].movement
    assert found is not None
    assert (found.sd, found.nights) == (None, 1)


def test_an_outline_keeps_what_it_is_estimated_from() -> None:
    """The history by month is all that the nights before are read from."""
    move = Move(metric=RELEVANCE, since=night(0).date, run="run-0", by=0.01, low=0, high=0.02)
    one = judged(1, moves=[move])
    assert outline(one).moves == [move]
    assert outline(one).started_at == one.started_at
    assert moving_share(outline(one), RELEVANCE) == 1


def test_the_newest_night_that_knows_of_it_speaks() -> None:
    """Gates and comparisons read what the nights have found."""
    older, newer = (
        manifest.model_copy(
            update={"metrics": [m.model_copy(update={"movement": moves}) for m in manifest.metrics]}
        )
        for manifest, moves in ((judged(0), MOVES), (judged(1), None))
    )
    assert newest_movement(RELEVANCE, [newer, older]) == MOVES


# What follows from it


def test_a_bad_mood_fires_nothing_and_a_real_drop_does() -> None:
    """A drop of two standard deviations is no news of such a judge; one of 0.15 is. The levels of
    the nights say so where no labelled set does.
    """
    mood = golden(0.0, seed=2)
    low = {name: np.clip(own - 0.04, 0, 1) for name, own in mood.night().items()}
    world, blind = (store(0.02, 22, knows=knows)[0] for knows in (True, False))
    assert not fired(world.would_be(low))
    assert not fired(blind.would_be(low))
    assert fired(world.would_be(mood.night(lost=0.3))) == set(METRICS)


def test_an_alert_says_how_far_the_judge_moves() -> None:
    """In its sentence, with the number of nights."""
    world, made = store(0.02, 22)
    found = world.would_be(made.night(lost=0.3)).findings
    (message,) = (o.message for o in found if (o.kind, o.metric) == ("metric", RELEVANCE))
    assert "; this judge moves by 0.0" in message
    assert "a night (SD, from 22 nights)" in message


def test_the_page_of_the_night_says_it() -> None:
    """On the card of the metric."""
    one = judged(3)
    told = [m.model_copy(update={"movement": MOVES}) for m in one.metrics]
    one = one.model_copy(update={"metrics": told})
    assert b"this judge moves by 0.012 a night (SD, from 14 nights)" in night_page(one, [])
    assert cards(one, [])[0].moves == "this judge moves by 0.012 a night (SD, from 14 nights)"
    assert movement_text(JudgeMovement(sd=0.0, nights=14)) == ""
    assert movement_text(None) == ""


def test_movement_of_the_means_is_told_where_it_counts() -> None:
    """Comparisons and gates count what is seen in them, before the judge's own is known."""
    unknown = JudgeMovement(sd=None, nights=1, level=0.02, level_freedom=12)
    text = "this judge's movement from night to night is not known yet (1 of 8 nights)"
    assert movement_text(unknown) == text
    seen = unknown.model_copy(update={"level_seen": True})
    assert movement_text(seen) == f"{text}; the means of nights move by 0.020 (SD)"


def test_a_comparison_of_two_nights_allows_for_it_and_says_so(tmp_path: Path) -> None:
    """The interval is wider than by the questions alone, and a note says why."""
    files = Files(str(tmp_path))
    world, _ = store(0.02, 23)
    found = compare_with_night_before(files, *world.nights[-2:], world.load)
    blind, _ = store(0.02, 23, knows=False)
    plain = compare_with_night_before(files, *blind.nights[-2:], blind.load)
    told = [notice for notice in found.notices if "this judge moves by 0.0" in notice]
    assert told
    assert "a night (SD, from 22 nights)" in told[0]
    assert not any("this judge" in notice for notice in plain.notices)
    for with_it, without in zip(found.metrics, plain.metrics, strict=True):
        assert with_it.difference == without.difference
        assert with_it.low < without.low < without.high < with_it.high
        assert with_it.p_value > without.p_value or with_it.p_value > 0.5
    (move,) = (move for move in world.nights[-1].moves if move.metric == RELEVANCE)
    (change,) = (metric for metric in found.metrics if metric.metric == RELEVANCE)
    assert (move.by, move.low, move.high) == (change.difference, change.low, change.high)


def test_a_comparison_says_where_it_is_not_known_yet(tmp_path: Path) -> None:
    """Two nights of a new store: one sentence for all metrics."""
    world, _ = store(0.02, 3)
    found = compare_with_night_before(Files(str(tmp_path)), *world.nights[-2:], world.load)
    (told,) = (notice for notice in found.notices if "this judge" in notice)
    assert told.startswith(f"{', '.join(METRICS)}: this judge's movement from night to night")


def test_a_movement_is_estimated_once_a_night() -> None:
    """Forty rules by segments ask for the same."""
    from ragmetrics.rules import NightContext

    world, _ = store(0.02, 12)
    now = world.nights[-1]
    asked = NightContext(now, {}, world.nights[:-1], lambda *_: pytest.fail("no score is read"))
    assert find_movement(asked, RELEVANCE) is find_movement(asked, RELEVANCE)


# Gates


def test_a_gate_reads_it_of_the_nights_that_were_judged_alike(tmp_path: Path) -> None:
    """Of the store's newest night with the same fingerprint."""
    settings = make_settings({"store": str(tmp_path)})
    for manifest, sd in ((judged(0), 0.01), (judged(1), 0.02)):
        moves = MOVES.model_copy(update={"sd": sd})
        known = [m.model_copy(update={"movement": moves}) for m in manifest.metrics]
        Runs(Files(str(tmp_path))).save(manifest.model_copy(update={"metrics": known}))
    found = find_movements(settings, {RELEVANCE: f"{RELEVANCE}-lexical", "faithfulness": "other"})
    assert found[RELEVANCE] == MOVES.model_copy(update={"sd": 0.02})
    assert found["faithfulness"] is None


def sides(by: float, questions: int = 150) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Two builds, the second worse by so much."""
    random = np.random.default_rng(2)
    before = random.uniform(0.4, 0.8, questions)
    after = before - by + random.normal(0, 0.05, questions)
    return tuple({f"q{n}": [float(x)] for n, x in enumerate(one)} for one in (before, after))


def test_a_gate_holds_no_build_for_the_judges_mood() -> None:
    """The serving build was judged on another night: a drop of 0.03 may be the judge's."""
    level = LevelError(0.02 * 2**0.5, 18)
    verdicts = {}
    for known in (None, level):
        fall = measure(*sides(0.03), lambda drop, level=known: level)
        one = VerdictEvidence(RELEVANCE, fall, 0.02, 150, 0, movement=MOVES if known else None)
        (verdicts[known],) = weigh([one], min_questions=30, max_missing=0.02)
    held, undecided = verdicts[None], verdicts[level]
    assert (held.verdict, undecided.verdict) == ("hold", "inconclusive")
    assert undecided.upper > held.upper
    assert undecided.low < held.low < held.high < undecided.high
    assert undecided.detectable > held.detectable
    assert undecided.movement == MOVES


def test_a_gate_says_how_far_its_judge_moves(tmp_path: Path) -> None:
    """Once for all metrics: on the build's page, and on the command line."""
    one = gate(metrics=[metric_verdict(movement=MOVES), metric_verdict(RELEVANCE, movement=MOVES)])
    site = Files(str(tmp_path))
    page = site.read(write_build(site, one, None)).decode()
    assert page.count("his judge moves by 0.012 a night (SD, from 14 nights)") == 1
    out = io.StringIO()
    print_gate(make_console(file=out, width=200), one)
    assert out.getvalue().count("this judge moves by 0.012 a night (SD, from 14 nights)") == 1


def test_no_number_of_questions_outweighs_a_judge_that_moves_too_far() -> None:
    """More golden questions do not still it: another judgement of the serving build would."""
    assert further_to_promote(0.0, 0.1, 100, 0.05) is not None
    assert further_to_promote(0.0, 0.1, 100, 0.05, LevelError(0.03, 18)) is None


def test_nights_far_apart_in_one_record_are_told_apart() -> None:
    """A day is that of the run, whatever the night's date is."""
    one = judged(0)
    later = judged(1, started_at=one.started_at + timedelta(hours=1))
    assert carried_movement(RELEVANCE, [one], [later]) == 0
