"""Whether a fall that is confined to one topic is told, with the right topic.

    python -m research.topics [--trials 200] [--nights 1000]

300 questions without tags, about eight of the twelve sections of the demo's help centre: those of
the demo, and questions made of words of its passages. In each trial half of the questions of one
section lose everything. Right: more than half of the questions of the told topic are of that
section. A question has its own level and moves by 0.05 from night to night; one in ten moves by
0.25. Then nights without a fall, and nights on which half of a section gets better: no topic may be
told.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from research.fault_world import AskedQuestion, World, first_world, read_questions
from research.whatif import make_pool
from ragmetrics.passages import PastQuestion, find_fallen_questions
from ragmetrics.records import question_key
from ragmetrics.rules.topic_changes import (fallen_topic)
from ragmetrics.stats import share_interval

QUESTIONS, SECTIONS, METRIC = 300, 8, "context_recall"
_NIGHTS = 7
_SAME_QUESTIONS = 50
"""Unchanged nights with the same questions."""
Values = NDArray[np.float64]


def draw_questions(
    world: World, pool: Sequence[AskedQuestion], rng: random.Random
) -> list[AskedQuestion]:
    """The questions of the demo about eight sections, and made ones, each text once."""
    sections = rng.sample(sorted({one.section for one in world.corpus}), SECTIONS)
    found = {one.text: one for one in read_questions(rng) if one.section in sections}
    own = [one for one in pool if one.section in sections]
    for one in rng.sample(own, len(own)):
        if len(found) == QUESTIONS:
            break
        found.setdefault(one.text, one)
    return list(found.values())


def past_questions(world: World, asked: Sequence[AskedQuestion]) -> dict[str, PastQuestion]:
    """What a store knows of the questions: the passage that the labels name, or the first one."""
    texts = {one.id: one.text for one in world.corpus}
    found = {}
    for one in asked:
        first = [hit.text for hit in world.search(one.text, one.channel, 1)]
        needed = [texts[name] for name in one.golden] or first
        found[question_key(one.text)] = PastQuestion(one.text, needed)
    return found


def draw_nights(count: int, rng: np.random.Generator) -> tuple[Values, Values]:
    """The mean of each question on the nights before, and its value now, without a fall."""
    level = rng.beta(4, 1, count)

    def night() -> Values:
        jump = (rng.random(count) < 0.1) * rng.normal(0, 0.25, count)
        return np.clip(level + rng.normal(0, 0.05, count) + jump, 0, 1)

    return np.mean([night() for _ in range(_NIGHTS)], axis=0), night()


def told(
    keys: Sequence[str], before: Values, now: Values, texts: dict[str, PastQuestion]
) -> list[str]:
    """The questions of the topic that is told; none where none is told."""
    old, new = dict(zip(keys, before, strict=True)), dict(zip(keys, now, strict=True))
    if fallen_topic(METRIC, old, new, texts) is None:
        return []
    found = find_fallen_questions({one: old[one] - new[one] for one in keys}, texts)
    return found.questions if found else []


def main() -> None:
    """Print what is told beside the truth."""
    parser = argparse.ArgumentParser(description="Topics beside the truth.")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--nights", type=int, default=1_000)
    chosen = parser.parse_args()
    report(chosen.trials, chosen.nights)


def report(trials: int = 200, nights: int = 1_000) -> None:
    """Print the shares of told and right topics, and of unchanged nights with a topic."""
    world = first_world()
    pool = make_pool(world, 4_000)
    right = any_told = 0
    for number in range(trials):
        rng, numbers = random.Random(number), np.random.default_rng(number)
        asked = draw_questions(world, pool, rng)
        texts, keys = past_questions(world, asked), [question_key(one.text) for one in asked]
        section = {key: one.section for key, one in zip(keys, asked, strict=True)}
        before, now = draw_nights(len(asked), numbers)
        fallen = rng.choice(sorted(set(section.values())))
        own = np.flatnonzero([one.section == fallen for one in asked])
        now[numbers.choice(own, len(own) // 2, replace=False)] = 0
        members = told(keys, before, now, texts)
        any_told += bool(members)
        own_share = Counter(section[one] for one in members)[fallen] / max(1, len(members))
        right += own_share > 1 / 2
    low, high = share_interval(right, trials)
    print(f"told: {any_told} of {trials} trials")
    print(f"told with the right topic: {right / trials:.1%} [{low:.1%}, {high:.1%}] (goal 90%)")
    false = risen = 0
    recoveries = min(trials, nights)
    for number in range(nights):
        if number % _SAME_QUESTIONS == 0:
            asked = draw_questions(world, pool, random.Random(-number))
            texts, keys = past_questions(world, asked), [question_key(one.text) for one in asked]
        before, now = draw_nights(len(asked), np.random.default_rng([number, 1]))
        false += bool(told(keys, before, now, texts))
        if number < recoveries:
            best = random.Random(number).choice(sorted({one.section for one in asked}))
            mended = [n for n, one in enumerate(asked) if one.section == best]
            before[mended[::2]] = 0
            risen += bool(told(keys, before, now, texts))
    print(f"unchanged nights with a topic told: {false} of {nights} (goal at most 1%)")
    print(f"nights of a recovery with a topic told: {risen} of {recoveries}")


if __name__ == "__main__":
    main()
