"""The sides of a drop: which nights' levels differ between them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ragmetrics.records import JudgeMovement, Manifest
from ragmetrics.rules import correct_drop
from ragmetrics.rules.sides import level_by_movement
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
