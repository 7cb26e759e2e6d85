"""Simulations of worlds whose truth is known: what the figures of the docs came from.

python -m research NAME [--rows N]

They are run by hand, outside `make check` and the wheel; tests/simulations runs small forms. Some need
the labelled logs that $RAGMETRICS_DATA names.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import NamedTuple

from research import (
    active_sampling,
    all_year,
    cascade,
    coverage,
    false_alarms,
    feedback_coverage,
    gate_holds,
    health,
    judge_change,
    judge_movement,
    learned_judge,
    lost_passages,
    people_labels,
    probabilities,
    prediction_powered,
    topics,
    traces,
    weekdays,
    whatif,
)


class Study(NamedTuple):
    """A simulation, with what its figures are for."""

    run: Callable[[int], Iterable[str] | None]
    rows: int
    """Nights, draws, years or trials of each kind, where `--rows` says nothing."""
    page: str
    """The page or the decision record that has its figures."""


STUDIES = {
    "intervals": Study(coverage.report, coverage.NIGHTS, "docs/explanation/statistics.md"),
    "feedback": Study(
        feedback_coverage.report, feedback_coverage.TRIALS, "docs/how-to/user-feedback.md"
    ),
    "traces": Study(traces.report, traces.TRIALS, "docs/how-to/logs.md"),
    "alarms": Study(
        lambda rows: false_alarms.report(rows, min(500, rows)), 1_000, "docs/explanation/statistics.md"
    ),
    "health": Study(
        lambda rows: health.report(rows, max(1, rows // 5)), 1_000, "docs/reference/metrics.md"
    ),
    "all-year": Study(all_year.report, 200, "docs/explanation/statistics.md"),
    "weekdays": Study(
        lambda rows: weekdays.report(rows, max(1, rows // 5)), 1_000, "docs/explanation/statistics.md"
    ),
    "movement": Study(
        lambda rows: judge_movement.report(rows, min(200, rows)), 500, "docs/explanation/statistics.md"
    ),
    "judge-change": Study(
        judge_change.report, judge_change.DRAWS, "docs/how-to/changing-the-judge.md"
    ),
    "sampled": Study(
        prediction_powered.report, prediction_powered.NIGHTS, "docs/explanation/statistics.md"
    ),
    "active": Study(active_sampling.report, active_sampling.NIGHTS, "docs/explanation/statistics.md"),
    "labels": Study(people_labels.report, people_labels.DRAWS, "docs/explanation/statistics.md"),
    "learned": Study(learned_judge.report, active_sampling.NIGHTS, "docs/how-to/learned-judge.md"),
    "probabilities": Study(
        probabilities.report, probabilities.NIGHTS, "docs/how-to/calibrating.md"
    ),
    "cascade": Study(lambda rows: cascade.report(), 0, "docs/how-to/rerank.md"),
    "lost": Study(
        lambda rows: lost_passages.report(nights=rows), 200, "docs/how-to/lost-passages.md"
    ),
    "gates": Study(gate_holds.report, 2_000, "docs/decisions/0020-gate-verdicts.md"),
    "topics": Study(
        lambda rows: topics.report(max(1, rows // 5), rows), 1_000, "docs/how-to/topics.md"
    ),
    "whatif": Study(whatif.report, 200, "docs/how-to/whatif.md"),
}


def main() -> None:
    """Run those named."""
    parser = argparse.ArgumentParser(
        prog="python -m research",
        description=__doc__,
        epilog="\n".join(f"{name:10} {study.page}" for name, study in STUDIES.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="+", metavar="NAME", choices=STUDIES)
    parser.add_argument("--rows", type=int, help="nights, draws, years or trials of each kind")
    options = parser.parse_args()
    for name in options.names:
        study = STUDIES[name]
        print(f"## {name}: {study.page}\n", flush=True)
        for line in study.run(options.rows or study.rows) or ():
            print(line, flush=True)


if __name__ == "__main__":
    main()
