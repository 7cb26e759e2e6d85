"""Agents' logs whose truth is known: `python -m research traces`.

A question takes three hops. Each asks for one fact, and retrieves its passage among others; the
reference has the three facts. A night before retrieves all. Then one hop loses its passage for half
of the questions, and for a fifth of these another hop finds it by chance. The spans of all traces
are mixed. A trial is right by

    union recall    each row has the share of facts that all hops together retrieved
    fallen hop      `worst_hop` names the hop most often, and so do the lost passages

Then the peak of memory for reading and staging a night of spans, in a process each.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from ragmetrics.config import make_settings
from ragmetrics.passages import Run
from ragmetrics.passages.diagnosis.report import find_lost_passages
from ragmetrics.pipeline import evaluate
from ragmetrics.storage import RunRef

TRIALS = 100
QUESTIONS = 40
HOPS = 3
FALLS, FOUND_ELSEWHERE = 0.5, 0.2
START = datetime(2026, 11, 19, 8, tzinfo=UTC)


class Fact(NamedTuple):
    """A passage, and what a hop asks for it."""

    id: str
    query: str
    text: str


class Right(NamedTuple):
    """What a trial told rightly."""

    recall: bool
    worst_hop: bool
    lost_hop: bool


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(4))


def _facts(rng: random.Random, name: str) -> list[Fact]:
    """The facts of a chain: each begins where the one before ends."""
    words = [_word(rng) for _ in range(HOPS + 1)]
    facts = []
    for number, (start, end) in enumerate(zip(words, words[1:])):
        link = _word(rng)
        text = f"The {link} of {start} is {end}."
        facts.append(Fact(f"{name}-{number}", f"What is the {link} of {start}?", text))
    return facts


def spans_of(trace: str, question: str, asked: list[tuple[str, list[Fact]]]) -> list[dict[str, Any]]:
    """An agent's trace in OpenInference's form: its root, and a retrieval for each hop."""
    def span(kind: str, second: int, **more: Any) -> dict[str, Any]:
        return {
            "span_kind": kind,
            "start_time": (START + timedelta(seconds=second)).isoformat(),
            "parent_id": None if kind == "AGENT" else f"{trace}-0",
            "context.span_id": f"{trace}-{second}",
            "context.trace_id": trace,
            **more,
        }

    root = {"attributes.input.value": question, "attributes.output.value": "It is known."}
    hops = [
        span(
            "RETRIEVER",
            number,
            **{
                "attributes.input.value": query,
                "attributes.retrieval.documents": [
                    {"document.id": fact.id, "document.content": fact.text} for fact in found
                ],
            },
        )
        for number, (query, found) in enumerate(asked, 1)
    ]
    return [span("AGENT", 0, **root), *hops]


def trial(seed: int) -> Right:
    """Whether one night is told rightly."""
    rng = random.Random(seed)
    chains = [_facts(rng, f"q{number}") for number in range(QUESTIONS)]
    others = [fact for number in range(60) for fact in _facts(rng, f"other{number}")]
    fallen = rng.randrange(HOPS)
    before: list[dict[str, Any]] = []
    now: list[dict[str, Any]] = []
    recall, golden = {}, []
    for number, chain in enumerate(chains):
        question = f"{chain[0].query[:-1]}, and what follows from it?"
        found = [[fact, *rng.sample(others, 3)] for fact in chain]
        for hop in found:
            rng.shuffle(hop)
        before += spans_of(f"t{number}", question, list(zip([f.query for f in chain], found)))
        left = 0
        if rng.random() < FALLS:
            found[fallen] = [fact for fact in found[fallen] if fact is not chain[fallen]]
            if rng.random() < FOUND_ELSEWHERE:
                found[(fallen + 1) % HOPS].append(chain[fallen])
            else:
                left = 1
        now += spans_of(f"t{number}", question, list(zip([f.query for f in chain], found)))
        recall[f"t{number}"] = (HOPS - left) / HOPS
        golden.append(
            {
                "user_input": question,
                "reference": " ".join(fact.text for fact in chain),
                "reference_context_ids": [fact.id for fact in chain],
            }
        )
    for spans in (before, now):
        rng.shuffle(spans)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "golden.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in golden), encoding="utf-8")
        metrics = ["context_recall", "worst_hop"]
        more = {"preset": "openinference", "golden": str(path), "judge": "lexical"}
        nights = [evaluate(spans, metrics, **more) for spans in (before, now)]
        scores = {(one["metric"], one["id"]): one for one in nights[1].records()}
        was, is_now = (Run(night.files, RunRef.of(night.manifest)) for night in nights)
        lost = find_lost_passages(make_settings({"store": folder}), is_now, [was], ask=lambda _: False)
    told = {name: scores["context_recall", name]["value"] for name in recall}
    worst = [one for (metric, _), one in scores.items() if metric == "worst_hop" and one["value"] < 1]
    hops = Counter(one["details"]["worst"] for one in worst)
    return Right(
        all(abs(told[name] - recall[name]) < 1e-9 for name in recall),
        bool(hops) and hops.most_common(1)[0][0] == fallen + 1,
        lost is not None and list(lost.hops) == [fallen + 1],
    )


def write_spans(path: Path, spans: int) -> None:
    """A log of spans, four a trace, with the traces of a minute mixed."""
    rng = random.Random(spans)
    pool = [fact for number in range(200) for fact in _facts(rng, f"p{number}")]
    pool = [fact._replace(text=f"{fact.text} " * 12) for fact in pool]
    with path.open("w", encoding="utf-8") as file:
        for first in range(0, spans // (HOPS + 1), 50):
            minute: list[dict[str, Any]] = []
            for number in range(first, min(first + 50, spans // (HOPS + 1))):
                asked = [(fact.query, rng.sample(pool, 4)) for fact in rng.sample(pool, HOPS)]
                minute += spans_of(f"t{number}", f"Question {number}?", asked)
            rng.shuffle(minute)
            file.writelines(json.dumps(span) + "\n" for span in minute)


def peak_of(spans: int) -> tuple[int, float]:
    """Rows that were staged, and the peak of memory in MB, of a process that reads some spans."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spans.jsonl"
        write_spans(path, spans)
        done = subprocess.run(
            [sys.executable, "-m", "research.traces", str(path)], check=True, capture_output=True, text=True
        )
        rows, peak = done.stdout.split()
    return int(rows), float(peak)


def _stage(path: str) -> None:
    """Read and stage a log with the lexical judge, and print its rows and the peak of memory."""
    from ragmetrics.logs import find_inputs
    from ragmetrics.scoring import plan_run, stage_run

    with tempfile.TemporaryDirectory() as folder:
        settings = make_settings(
            {"logs": path, "store": folder, "preset": "openinference", "judge": "lexical"}
        )
        day = date(2026, 11, 19)
        inputs = find_inputs(settings, day)
        staged = stage_run(settings, plan_run(settings, day, inputs, ""), inputs, datetime.now(UTC))
    print(staged.source.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def report(trials: int) -> Iterator[str]:
    """The shares of trials that are right, and the peaks of memory."""
    right = [trial(seed) for seed in range(trials)]
    yield f"{trials} trials of {QUESTIONS} questions with {HOPS} hops, one of which fell; right:"
    for name in Right._fields:
        yield f"  {name:10} {sum(getattr(one, name) for one in right) / trials:.1%}"
    for spans in (10_000, 100_000, 200_000):
        rows, peak = peak_of(spans)
        yield f"{spans:8,} spans: {rows:7,} rows, peak of reading and staging {peak:6.0f} MB"


if __name__ == "__main__":
    _stage(sys.argv[1])
