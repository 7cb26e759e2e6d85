"""Agents' traces whose truth is known: a small form of `python -m research traces`."""

from __future__ import annotations

import pytest

from research.traces import trial


@pytest.mark.parametrize("seed", range(3))
def test_union_recall_and_the_fallen_hop_are_told(seed: int) -> None:
    """One of three hops loses its passages; each row's recall is that of all hops together."""
    assert all(trial(seed))
