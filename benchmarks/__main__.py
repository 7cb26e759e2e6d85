"""Runs the benchmarks and prints their figures.

python -m benchmarks                  (all)
python -m benchmarks engine --rows 200 --only speed,tokens
python -m benchmarks scale --rows 1000000
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping

from benchmarks import (
    dask_scale,
    decisions,
    engine,
    judge_speed,
    large_night,
    processor,
    scale,
    store_scale,
    two_cores,
    year,
)
from ragmetrics.config.settings import DEFAULT_METRICS

Options = argparse.Namespace


def _engine(options: Options) -> None:
    only = [name for name in options.only.split(",") if name]
    if unknown := set(only) - set(engine.PARTS):
        raise SystemExit(f"--only: {', '.join(unknown)}; there are: {', '.join(engine.PARTS)}")
    engine.report(options.rows or 1_000, options.peer_rows, only)


def _decisions(options: Options) -> None:
    decisions.report(options.rows or 400, options.data)


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


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)


BENCHMARKS: Mapping[str, Callable[[Options], None]] = {
    "engine": _engine,
    "decisions": _decisions,
    "judge": _judge,
    "processor": _processor,
    "store": _store,
    "cores": _cores,
    "dask": _dask,
    "scale": _scale,
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
    parser.add_argument("--rows", type=int, help="of the log, or of the smaller one")
    parser.add_argument("--peer-rows", type=int, default=100, help="engine: of the peers' log")
    parser.add_argument("--data", default="", help="decisions: a folder of labelled sets")
    parser.add_argument("--only", default="", help=f"engine: {', '.join(engine.PARTS)}")
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no {', '.join(sorted(unknown))}; there are: {', '.join(BENCHMARKS)}")
    for name in options.names or BENCHMARKS:
        print(f"## {name}\n", flush=True)
        BENCHMARKS[name](options)


if __name__ == "__main__":
    main()
