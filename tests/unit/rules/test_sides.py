"""The sides of a drop: which nights' levels differ between them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ragmetrics.records import (
    JudgeBridge,
    JudgeMovement,
    JudgeOffset,
    Manifest,
    across_change,
)
from ragmetrics.rules import correct_drop
from ragmetrics.rules.sides import level_by_movement, offset_error
from ragmetrics.stats import compare
from tests.fakes.past import a_night, scores

RECALL = "context_recall"
SEEN = JudgeMovement(
    sd=0.02, nights=20, freedom=12.0, level=0.05, level_freedom=12, level_seen=True
)
DROP = compare(
    {f"q{n}": [0.8 + n % 7 / 100] for n in range(40)},
    {f"q{n}": [0.7 + n % 5 / 100] for n in range(40)},
)


def nights(*ago: int, run: str = "run") -> list[Manifest]:
    """Nights so many days ago, each judged on its own day."""
    made = [a_night(scores([0.5, 0.7]), ago=one, run=run).manifest for one in ago]
    return [
        manifest.model_copy(update={"started_at": manifest.started_at - timedelta(ago[place])})
        for place, manifest in enumerate(made)
    ]


def test_two_builds_of_the_same_nights_share_their_levels() -> None:
    """What moved a night moved both builds that served it: their drop is not widened."""
    assert DROP
    both = nights(3, 2, 1)
    assert level_by_movement(DROP, RECALL, both, both, SEEN) is None
    assert correct_drop(DROP, RECALL, both, both, SEEN) == DROP


def test_what_two_sides_have_of_one_night_cancels() -> None:
    """Of two nights against the second of them half a night each is left."""
    assert DROP
    found = level_by_movement(DROP, RECALL, nights(2, 1), nights(1), SEEN)
    assert found and found.error == pytest.approx(0.05 * 0.5**0.5)
    apart = level_by_movement(DROP, RECALL, nights(3, 2), nights(1), SEEN)
    assert apart and apart.error == pytest.approx(0.05 * 1.5**0.5)


def test_runs_of_one_date_that_were_judged_on_two_days_have_two_levels() -> None:
    """The runs of a gate have no night of their own."""
    assert DROP
    old, new = nights(0), [nights(0)[0].model_copy(update={"run": "other"})]
    later = [one.model_copy(update={"started_at": one.started_at + timedelta(2)}) for one in new]
    found = level_by_movement(DROP, RECALL, old, later, SEEN)
    assert found and found.error == pytest.approx(0.05 * 2**0.5)


def test_an_offset_that_both_sides_have_cancels() -> None:
    """Two nights of the old judge, or two of the new one: there is nothing to correct."""
    offset = JudgeOffset(
        metric=RECALL,
        replaced="judge-0",
        fingerprint="judge-1",
        offset=0.1,
        low=0.0,
        high=0.2,
        error=0.05,
        freedom=40,
        questions=41,
    )
    bridge = JudgeBridge(replaced="old", since=nights(0)[0].date, offsets=[offset])
    old = [a_night(scores([0.5, 0.7]), ago=one, judge="judge-0").manifest for one in (3, 2)]
    moved = across_change(old, bridge)
    assert offset_error(RECALL, moved[:1], moved[1:]) is None
    assert offset_error(RECALL, nights(1), nights(0)) is None
    found = offset_error(RECALL, moved, nights(0))
    assert found and found.share == 1.0
