"""Runs every benchmark and prints its figures: `python -m benchmarks [--rows 2000]`."""

from __future__ import annotations

import argparse

from benchmarks import judge_speed, scale


def main() -> None:
    """Run all benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000, help="the smaller log")
    rows = parser.parse_args().rows
    print(judge_speed.report(rows // 5))
    print(scale.report(rows))


if __name__ == "__main__":
    main()
