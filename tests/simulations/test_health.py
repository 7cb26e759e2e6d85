"""Metrics of health, as proposed rules watch them: a small form of `python -m research health`."""

from __future__ import annotations

import numpy as np
import pytest

from research.health import FAULTS, HISTORY, nightly, rows_by_section, started


def test_each_fault_fires_on_its_first_night() -> None:
    """Nine faults after the same three weeks; the night without one fires nothing. About 12 s."""
    sections = rows_by_section()
    if sections is None:
        pytest.skip("the labelled data are not there")
    random = np.random.default_rng(37)
    past = started(random, sections)
    quiet = past.copy().add(nightly(random, sections, HISTORY))
    assert not [one for one in quiet if one.state == "firing"]
    for fault, metric in FAULTS.items():
        found = past.copy().add(nightly(random, sections, HISTORY, fault))
        assert metric in {one.metric for one in found if one.state == "firing"}, fault
