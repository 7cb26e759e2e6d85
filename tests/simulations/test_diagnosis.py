"""Lost passages, topics and what-ifs in worlds whose truth is known: small forms of
`python -m research lost topics whatif`.
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from ragmetrics.records import question_key
from research import topics as topic_world, whatif as whatif_world
from research.fault_world import FAULTS, first_world, read_questions, worsen_ranker
from research.lost_passages import HIDDEN_FROM_LOGS, confusion, diagnose


def right(faults: tuple[str, ...], *, probe: bool) -> float:
    """The share of lost passages whose stage is right in one world."""
    rng = random.Random(str(faults))
    before, questions = first_world(), read_questions(rng)
    now = before
    for fault in faults:
        now = FAULTS[fault](now, rng)
    told = diagnose(before, now, questions, probe=probe)
    assert told
    found = confusion(before, now, questions, told, logs=not probe)
    return sum(count for (_, _, good), count in found.items() if good) / found.total()


@pytest.mark.parametrize("fault", sorted(set(FAULTS) - set(HIDDEN_FROM_LOGS)))
def test_each_fault_is_told_from_the_logs(fault: str) -> None:
    """The stage is right for at least 85% of the lost passages."""
    assert right((fault,), probe=False) >= 0.85


@pytest.mark.parametrize(
    "faults", [*((fault,) for fault in FAULTS), ("section", "ranker"), ("chunker", "filter")]
)
def test_each_fault_is_told_with_corpus_and_retriever(faults: tuple[str, ...]) -> None:
    """The stage is right for at least 95%, also of two faults at once."""
    assert right(faults, probe=True) >= 0.95


def test_the_topic_that_fell_is_told() -> None:
    """In eight of ten trials at least; none is told where nothing fell."""
    world = first_world()
    pool = topic_world.make_pool(world, 1_500)
    found, false = 0, 0
    for number in range(10):
        rng, numbers = random.Random(number), np.random.default_rng(number)
        asked = topic_world.draw_questions(world, pool, rng)
        texts = topic_world.past_questions(world, asked)
        keys = [question_key(one.text) for one in asked]
        before, now = topic_world.draw_nights(len(asked), numbers)
        false += bool(topic_world.told(keys, before, now, texts))
        fallen = rng.choice(sorted({one.section for one in asked}))
        own = np.flatnonzero([one.section == fallen for one in asked])
        now[numbers.choice(own, len(own) // 2, replace=False)] = 0
        section = {key: one.section for key, one in zip(keys, asked, strict=True)}
        members = topic_world.told(keys, before, now, texts)
        found += Counter(section[member] for member in members)[fallen] > len(members) / 2
    assert found >= 8
    assert false <= 1


def test_the_larger_k_is_told_to_mend() -> None:
    """In five nights of a worse ranker; most of their intervals hold the truth."""
    before = first_world()
    pool = whatif_world.make_pool(before, 1_500)
    now = worsen_ranker(before, random.Random("worse"))
    truth, _ = whatif_world.true_share(before, now, pool)
    held = 0
    for number in range(5):
        _, best, _ = whatif_world.trial(before, now, random.Random(number).sample(pool, 240))
        assert best.name == "k=10"
        held += (best.low or 0.0) <= truth <= (best.high or 1.0)
    assert held >= 3
