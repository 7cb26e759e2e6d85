"""The benchmark of a large judgement store, reduced: a night finds its own, in bounded memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import store_scale
from ragmetrics.storage import Files


@pytest.mark.process
def test_a_night_finds_nine_in_ten_in_little_memory(tmp_path: Path) -> None:
    """50,000 judgements and 6 MB of vectors: all that the night knows is found in 500 MB."""
    store_scale.make_store(Files(str(tmp_path)), 50_000, 250, 1_000)
    night = store_scale.measure(str(tmp_path), 250, vectors=True)
    assert (night.lookups, night.known) == (250 * 11, 225 * 11)
    assert night.peak_mb < 500
