"""Runs the benchmarks and prints their figures.

python -m benchmarks                  (all)
python -m benchmarks engine --rows 200 --only speed,tokens
python -m benchmarks scale --rows 1000000
python -m benchmarks intervals alarms weekdays sampled active --rows 50   (simulations, in short)
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping

from benchmarks import (
    active_sampling,
    all_year,
    cascade,
    coverage,
    dask_scale,
    engine,
    false_alarms,
    gate_holds,
    judge_movement,
    judge_speed,
    large_night,
    learned_judge,
    lost_passages,
    people_labels,
    prediction_powered,
    processor,
    scale,
    store_scale,
    topics,
    two_cores,
    weekdays,
    whatif,
    year,
)
from ragmetrics.config.settings import DEFAULT_METRICS

Options = argparse.Namespace


def _engine(options: Options) -> None:
    only = [name for name in options.only.split(",") if name]
    if unknown := set(only) - set(engine.PARTS):
        raise SystemExit(f"--only: {', '.join(unknown)}; there are: {', '.join(engine.PARTS)}")
    engine.report(options.rows or 1_000, options.peer_rows, only)


def _judge(options: Options) -> None:
    print(judge_speed.report((options.rows or 2_000) // 5))


def _processor(options: Options) -> None:
    processor.report(options.rows or 1_000)


def _store(options: Options) -> None:
    print(store_scale.report(1_000_000, options.rows or 10_000))


def _cores(options: Options) -> None:
    print(two_cores.report(options.rows or 100_000))


def _dask(options: Options) -> None:
    print(dask_scale.report(options.rows or 20_000, DEFAULT_METRICS, ("threads", "dask")))


def _scale(options: Options) -> None:
    print(scale.report(min(options.rows or 2_000, 2_000)))
    _print(large_night.report(options.rows or 20_000))


def _year(options: Options) -> None:
    _print(year.report(rows=options.rows or 0))


def _intervals(options: Options) -> None:
    _print(coverage.report(options.rows or coverage.NIGHTS))


def _alarms(options: Options) -> None:
    _print(false_alarms.report(options.rows or 1_000, min(500, options.rows or 500)))


def _all_year(options: Options) -> None:
    _print(all_year.report(options.rows or 200))


def _weekdays(options: Options) -> None:
    nights = options.rows or 1_000
    _print(weekdays.report(nights, max(1, nights // 5)))


def _movement(options: Options) -> None:
    _print(judge_movement.report(options.rows or 500, min(200, options.rows or 200)))


def _sampled(options: Options) -> None:
    _print(prediction_powered.report(options.rows or prediction_powered.NIGHTS))


def _labels(options: Options) -> None:
    _print(people_labels.report(options.rows or people_labels.DRAWS))


def _learned(options: Options) -> None:
    _print(learned_judge.report(options.rows or active_sampling.NIGHTS))


def _cascade(options: Options) -> None:
    _print(cascade.report())


def _active(options: Options) -> None:
    _print(active_sampling.report(options.rows or active_sampling.NIGHTS))


def _lost(options: Options) -> None:
    lost_passages.report(nights=options.rows or 200)


def _gates(options: Options) -> None:
    _print(gate_holds.report(options.rows or 2_000))


def _topics(options: Options) -> None:
    nights = options.rows or 1_000
    topics.report(max(1, nights // 5), nights)


def _whatif(options: Options) -> None:
    whatif.report(options.rows or 200)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)


BENCHMARKS: Mapping[str, Callable[[Options], None]] = {
    "engine": _engine,
    "judge": _judge,
    "processor": _processor,
    "store": _store,
    "cores": _cores,
    "dask": _dask,
    "scale": _scale,
    "intervals": _intervals,
    "alarms": _alarms,
    "all-year": _all_year,
    "weekdays": _weekdays,
    "movement": _movement,
    "sampled": _sampled,
    "labels": _labels,
    "learned": _learned,
    "cascade": _cascade,
    "active": _active,
    "lost": _lost,
    "gates": _gates,
    "topics": _topics,
    "whatif": _whatif,
    "year": _year,
}


def main() -> None:
    """Run those named, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument(
        "--rows",
        type=int,
        help="of the log, or of the smaller one; intervals, alarms, weekdays, movement, sampled, "
        "labels, learned, active: nights of each kind; all-year: years",
    )
    parser.add_argument("--peer-rows", type=int, default=100, help="engine: of the peers' log")
    parser.add_argument("--only", default="", help=f"engine: {', '.join(engine.PARTS)}")
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no {', '.join(sorted(unknown))}; there are: {', '.join(BENCHMARKS)}")
    for name in options.names or BENCHMARKS:
        print(f"## {name}\n", flush=True)
        BENCHMARKS[name](options)


if __name__ == "__main__":
    main()
