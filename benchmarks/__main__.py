"""Runs every benchmark and prints its ratios: `python -m benchmarks [--rows 2000]`."""

from __future__ import annotations

import argparse

from benchmarks import scale


def main() -> None:
    """Run all benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000, help="the smaller log")
    print(scale.report(parser.parse_args().rows))


if __name__ == "__main__":
    main()
