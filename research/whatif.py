"""Whether a what-if tells the right variant, with an interval that holds the truth.

    python -m research.whatif [--trials 200]

A world whose ranker got worse, over the demo's corpus, and a pool of thousands of questions made of
its sentences. The truth is the share of all fallen questions of the pool that k = 10 mends. Each
trial is a night of 240 questions of the pool: its fallen questions are asked again as now (k = 4),
with k = 10, and without filters, which this world does not have.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from pydantic import JsonValue

from research import fault_world
from research.fault_world import AskedQuestion, World, first_world, worsen_ranker, write_night
from research.lost_passages import FIRST, settings_of
from ragmetrics.passages import Run, needing_questions_of
from ragmetrics.pipeline.variant_results import (VariantAnswers, measure_variants)
from ragmetrics.records import AS_NOW, VariantResult
from ragmetrics.retriever import Ask, ask_retriever, question_of
from ragmetrics.storage import Files

NIGHT = 240
LARGE = 10
_WORD = re.compile(r"\w{4,}")


def make_pool(world: World, count: int) -> list[AskedQuestion]:
    """Questions of five words of one passage each, which is their golden passage."""
    rng, found = random.Random("pool"), dict[str, AskedQuestion]()
    while len(found) < count:
        one = rng.choice(list(world.corpus))
        words = sorted(set(_WORD.findall(one.text)))
        text = " ".join(rng.sample(words, 5))
        found[text] = AskedQuestion(text, one.section, "web", (one.id,))
    return list(found.values())


def has(world: World, one: AskedQuestion, k: int) -> bool:
    """Whether the retriever returns the golden passage of a question."""
    return one.golden[0] in {hit.id for hit in world.search(one.text, one.channel, k)}


def true_share(before: World, now: World, pool: Sequence[AskedQuestion]) -> tuple[float, int]:
    """The share of the pool's fallen questions that the larger k mends, and their number."""
    k = fault_world.K
    fallen = [one for one in pool if has(before, one, k) and not has(now, one, k)]
    return sum(has(now, one, LARGE) for one in fallen) / len(fallen), len(fallen)


def trial(before: World, now: World, asked: Sequence[AskedQuestion]) -> list[VariantResult]:
    """The variants of one night, `as now` first, without scores of metrics."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        refs = [
            write_night(folder, FIRST + timedelta(days=day), world, asked)
            for day, world in enumerate((before, now))
        ]
        runs = [Run(Files(made), ref) for ref in refs]
        settings = settings_of(folder, now, probe=True)
        fault_world.asked_world.append(now)
        fallen, others, _ = needing_questions_of(runs[1], runs[:1], 200)
        variants: dict[str, dict[str, JsonValue]] = {
            AS_NOW: {},
            f"k={LARGE}": {"k": LARGE},
            "no_filters": {"filters": False},
        }
        answers = []
        for name, parameters in variants.items():
            asks = [Ask(question_of(one.row), parameters) for one in (*fallen, *others)]
            rows = ask_retriever(settings, "new", asks).rows
            answers.append(VariantAnswers(name, parameters, rows))
        return measure_variants(answers, fallen, others, [])


def main() -> None:
    """Print what is told beside the truth."""
    parser = argparse.ArgumentParser(description="What-ifs beside the truth.")
    parser.add_argument("--trials", type=int, default=200)
    report(parser.parse_args().trials)


def report(trials: int = 200, questions: int = 4_000) -> None:
    """Print coverage and the share of right variants."""
    before = first_world()
    pool = make_pool(before, questions)
    now = worsen_ranker(before, random.Random("worse"))
    truth, fallen = true_share(before, now, pool)
    print(f"pool: {len(pool):,} questions, {fallen:,} fallen, k={LARGE} mends {truth:.1%} of them")
    held = right = asked = 0
    for number in range(trials):
        found = trial(before, now, random.Random(number).sample(pool, NIGHT))
        as_now, best = found[:2]
        asked += as_now.asked
        right += best.name == f"k={LARGE}" and best.mended > as_now.mended
        own = next(one for one in found if one.name == f"k={LARGE}")
        held += (own.low or 0.0) <= truth <= (own.high or 1.0)
    print(f"fallen questions a night: {asked / trials:.0f}")
    print(f"k={LARGE} is told to mend most in {right / trials:.1%} of {trials} trials")
    print(f"its interval holds the truth in {held / trials:.1%} (goal 95%)")


if __name__ == "__main__":
    main()
