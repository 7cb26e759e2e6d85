"""Which stage is told for lost passages, beside the truth, in a world with known faults.

    python -m research.lost_passages [--worlds 4] [--nights 200]

Each fault of `fault_world` alone, and each pair of faults, `--worlds` times: two usual nights, then
a night of the faulty build. The stages come from the logs alone, and then with the corpus and the
retriever. A stage from the logs is right where it is the true one; by logs, `in_index` stands for
below_cut and filtered, and a passage that is gone from the index, with the corpus or without it, is
`not_in_index`. `undecided` is never right. Then nights without a fault: no sentence may be told.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

from research import fault_world
from research.fault_world import (
    FAULTS,
    AskedQuestion,
    World,
    first_world,
    read_questions,
    truths,
    write_night,
)
from ragmetrics.config import Settings, make_settings
from ragmetrics.passages import (Run)
from ragmetrics.passages.diagnosis.report import (find_lost_passages)
from ragmetrics.records import LostPassages, Stage, StageCounts
from ragmetrics.storage import Files

FIRST = date(2026, 11, 2)
GATE_QUESTIONS = (8, 20, 28, 60, 100)
HIDDEN_FROM_LOGS = ("filter_all",)
"""Faults that look to the logs like another one; they are printed, but not counted for the logs."""
_BY_LOGS: Mapping[Stage, Stage] = {
    "below_cut": "in_index",
    "filtered": "in_index",
    "not_in_corpus": "not_in_index",
}


def settings_of(folder: Path, world: World, *, probe: bool) -> Settings:
    """The settings of a world; with its corpus and retriever, or without."""
    values: dict[str, object] = {"store": str(folder)}
    if probe:
        corpus = folder / "corpus.jsonl"
        rows = ({"id": one.id, "text": one.text} for one in world.corpus)
        corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        values |= {
            "corpus": str(corpus),
            "retriever": {
                "entrypoint": "research.fault_world:retrieve",
                "lookup": "research.fault_world:look_up",
                "parameters": {"k": fault_world.K, "filters": True, "channel": "{tags.channel}"},
                "probe": {"unfiltered": {"filters": False}},
            },
        }
    return make_settings(values)


def diagnose(
    before: World, now: World, questions: Sequence[AskedQuestion], *, probe: bool
) -> LostPassages | None:
    """What is told of the night of a world, after two nights of another."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        nights = [
            write_night(folder, FIRST + timedelta(days=day), world, questions)
            for day, world in enumerate((before, before, now))
        ]
        runs = [Run(Files(made), ref, judged=True) for ref in nights]
        settings = settings_of(folder, now, probe=probe)
        fault_world.asked_world.append(now)
        return find_lost_passages(
            settings,
            runs[-1],
            runs[:-1],
            [StageCounts(of=len(questions))],
            build="new",
            ask=lambda _: probe,
        )


def confusion(
    before: World, now: World, questions: Sequence[AskedQuestion], told: LostPassages, *, logs: bool
) -> Counter[tuple[str, str, bool]]:
    """The lost passages by true stage, told stage, and whether it is right."""
    asked = {one.text: one for one in questions}
    found: Counter[tuple[str, str, bool]] = Counter()
    for one in told.passages:
        question = asked[one.user_input]
        true = truths(before, now, one.id, question.text, question.channel)
        true = {_BY_LOGS.get(stage, stage) for stage in true} if logs else true
        shown = one.stage if one.stage in true else sorted(true)[0]
        found[shown, one.stage, one.stage in true] += 1
    return found


def print_table(title: str, found: Counter[tuple[str, str, bool]]) -> None:
    """The confusion table: true stages down, told stages across."""
    told = sorted({stage for _, stage, _ in found})
    print(f"\n{title}")
    print(f"{'true':15}" + "".join(f"{one:>15}" for one in told))
    for true in sorted({stage for stage, _, _ in found}):
        counts = [sum(n for (a, b, _), n in found.items() if (a, b) == (true, one)) for one in told]
        print(f"{true:15}" + "".join(f"{one:15,}" for one in counts))
    print(f"right: {_share(found)}")


def _share(found: Counter[tuple[str, str, bool]]) -> str:
    right, total = sum(n for (_, _, good), n in found.items() if good), found.total()
    return f"{right:,} of {total:,} ({right / total:.1%})" if total else "no lost passage"


def run_faults(worlds: int, *, probe: bool) -> None:
    """Print the confusion of all faults and pairs of faults."""
    kinds = [(one,) for one in FAULTS] + list(itertools.combinations(FAULTS, 2))
    everything: Counter[tuple[str, str, bool]] = Counter()
    by_kind: dict[str, Counter[tuple[str, str, bool]]] = {}
    for kind in kinds:
        for number in range(worlds):
            rng = random.Random(f"{kind}/{number}")
            before, questions = first_world(), read_questions(rng)
            now = before
            for fault in kind:
                now = FAULTS[fault](now, rng)
            told = diagnose(before, now, questions, probe=probe)
            own = confusion(before, now, questions, told, logs=not probe) if told else Counter()
            by_kind.setdefault(" + ".join(kind), Counter()).update(own)
            if probe or not set(kind) & set(HIDDEN_FROM_LOGS):
                everything.update(own)
    for name, own in by_kind.items():
        print(f"{name:24}{_share(own)}")
    how = "with corpus and retriever" if probe else "from the logs alone"
    goal = "95%" if probe else "85%"
    print_table(f"Stages {how}, all faults and pairs (goal {goal})", everything)


def run_unchanged(nights: int) -> None:
    """Print on how many nights without a fault a sentence is told.

    The traffic changes from night to night, and the scores of the retriever move a little.
    """
    told, before, runs = [], list[StageCounts](), list[Run]()
    with tempfile.TemporaryDirectory() as made:
        rng, world = random.Random("unchanged"), first_world()
        every = read_questions(rng)
        for number in range(nights):
            own = random.Random(number)
            live = [one for one in every if not one.golden]
            asked = [one for one in every if one.golden] + own.sample(live, 80)
            moved = World(world.corpus, world.chunks, noise=0.05, seed=number)
            day = FIRST + timedelta(days=number)
            ref = write_night(Path(made), day, moved, asked)
            run = Run(Files(made), ref, judged=True)
            settings = settings_of(Path(made), world, probe=False)
            found = find_lost_passages(settings, run, runs[-7:], before[-7:])
            if found:
                before.append(found.counts)
                told += [found.sentence] if found.sentence else []
            runs.append(run)
    lost = sum(sum(one.stages.values()) for one in before)
    print(f"\nUnchanged nights: {nights}, of these with a stage told: {len(told)} (goal 0)")
    print(f"questions that lost a passage by chance: {lost / max(1, len(before)):.1f} a night")
    for one in told:
        print(f"  {one}")


def held_gates(builds: int, questions: int, fault: str | None = None) -> int:
    """How many builds are held for passages that are gone from the index, by a gate that knows of
    nights nothing. The scores of the retriever move a little; each build has the fault.
    """
    held, world = 0, first_world()
    for number in range(builds):
        rng = random.Random(f"{questions}/{number}")
        asked = rng.sample(read_questions(rng), questions)
        changed = FAULTS[fault](world, rng) if fault else world
        sides = [
            World(one.corpus, one.chunks, noise=0.05, seed=2 * number + turn)
            for turn, one in enumerate((world, changed))
        ]
        with tempfile.TemporaryDirectory() as made:
            refs = [
                write_night(Path(made), FIRST + timedelta(days=turn), one, asked)
                for turn, one in enumerate(sides)
            ]
            runs = [Run(Files(made), ref, judged=True) for ref in refs]
            settings = settings_of(Path(made), changed, probe=False)
            found = find_lost_passages(settings, runs[1], runs[:1], build="new")
        held += bool(found and found.stages_gone)
    return held


def run_gates(builds: int) -> None:
    """Print how many gates hold a build for its lost passages alone."""
    for questions in GATE_QUESTIONS:
        told = {
            fault or "unchanged": held_gates(builds, questions, fault)
            for fault in (None, "ranker", "section")
        }
        counts = ", ".join(f"{name} {count}" for name, count in told.items())
        print(f"Gates of {questions} questions held for lost passages, of {builds}: {counts}")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description="Stages of lost passages beside the truth.")
    parser.add_argument("--worlds", type=int, default=4, help="worlds of each fault and pair")
    parser.add_argument("--nights", type=int, default=200, help="nights without a fault")
    parser.add_argument("--logs-only", action="store_true", help="leave out corpus and retriever")
    chosen = parser.parse_args()
    report(chosen.worlds, chosen.nights, logs_only=chosen.logs_only)


def report(worlds: int = 4, nights: int = 200, *, logs_only: bool = False) -> None:
    """Print the tables of all faults, and of nights without one."""
    run_faults(worlds, probe=False)
    if not logs_only:
        run_faults(worlds, probe=True)
    run_unchanged(nights)
    run_gates(nights)


if __name__ == "__main__":
    main()
