"""`make mutation` tries a sample of mutants that says something about all of them."""

from __future__ import annotations

from collections import Counter

from scripts.mutation import sample

MUTANTS = {
    "large.py": [f"large_{n}" for n in range(900)],
    "small.py": [f"s_{n}" for n in range(100)],
}


def test_each_file_is_tried_in_proportion() -> None:
    """A tenth of the mutants is a tenth of each file's."""
    found = sample(MUTANTS, 100, seed=0)
    assert Counter(name.partition("_")[0] for name in found) == {"large": 90, "s": 10}
    assert len(set(found)) == 100


def test_the_sample_follows_from_its_seed() -> None:
    """So the same sample can be tried before and after a change."""
    assert sample(MUTANTS, 50, seed=3) == sample(MUTANTS, 50, seed=3)
    assert sample(MUTANTS, 50, seed=3) != sample(MUTANTS, 50, seed=4)


def test_zero_tries_all() -> None:
    """As does a number above that of the mutants."""
    everything = [name for names in MUTANTS.values() for name in names]
    assert sample(MUTANTS, 0, seed=0) == sample(MUTANTS, 5000, seed=0) == everything
