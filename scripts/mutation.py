"""Changes the code that decides, and counts the changes that the fast tests notice.

    make mutation MUTANTS=300

mutmut makes the mutants: small changes, as `<` for `<=`. It runs the fast tests that reach the
changed function. A mutant is killed if one of them fails. All mutants take many hours on two cores,
so a sample of them is tried: the same for the same seed, and in proportion for each file. MUTANTS=0
tries all. `[tool.mutmut]` in pyproject.toml names the files.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from math import sqrt
from pathlib import Path

MUTANTS = Path("mutants")
FIRST = "ragmetrics.stats.significance.*"
"""With these mutants mutmut makes all the others, and learns which test reaches what."""
KILLED, SURVIVED = (1, 3), (0, 5, 33)
"""Exit codes of a mutant's tests. 5 and 33: no test reaches the function."""


def main() -> None:
    """Make mutants, try a sample of them, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mutants", type=int, default=300, help="how many to try; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--children", type=int, default=2, help="mutants tried at once")
    options = parser.parse_args()
    _mutmut("run", "--max-children", str(options.children), FIRST)
    names = sample(_exit_codes(), options.mutants, options.seed)
    _mutmut("run", "--max-children", str(options.children), *names)
    wanted = set(names)
    print_table(
        {
            path: {name: code for name, code in codes.items() if name in wanted}
            for path, codes in _exit_codes().items()
        }
    )


def sample(mutants: Mapping[str, Collection[str]], count: int, seed: int) -> list[str]:
    """So many mutants, of each file in proportion; all for 0."""
    everything = [name for names in mutants.values() for name in names]
    if not 0 < count < len(everything):
        return everything
    draw = random.Random(seed)
    shuffled = [name for names in mutants.values() for name in draw.sample([*names], len(names))]
    step = len(shuffled) / count  # systematic: of each file in proportion
    first = draw.random() * step
    return [shuffled[int(first + step * number)] for number in range(count)]


def print_table(results: Mapping[str, Mapping[str, int | None]]) -> None:
    """One line per file, then the survivors by name."""
    total: Counter[str] = Counter()
    for path, codes in results.items():
        found = Counter(map(status, codes.values()))
        total += found
        if found:
            print(f"{share(found):>7} killed of {found.total():>4}  {path}")
    print(f"{share(total):>7} killed of {total.total():>4}  {dict(total)}")
    tried = total.total()
    killed = (total["killed"] + total["timeout"]) / tried
    print(f"standard error: {sqrt(killed * (1 - killed) / tried):.1%}")
    print("Survivors; `mutmut show NAME` prints the change:")
    for codes in results.values():
        for name, code in codes.items():
            if status(code) == "survived":
                print(f"  {name}")


def status(code: int | None) -> str:
    """What became of a mutant. One that runs for ever is noticed as well."""
    if code is None:
        return "not tried"
    if code in SURVIVED:
        return "survived"
    return "killed" if code in KILLED else "timeout"


def share(found: Counter[str]) -> str:
    """Killed mutants of all that were tried."""
    return f"{(found['killed'] + found['timeout']) / found.total():.1%}"


def _exit_codes() -> dict[str, dict[str, int | None]]:
    """By file, each mutant and the exit code of its tests; None before they ran."""
    return {
        str(path.relative_to(MUTANTS).with_suffix("")): json.loads(path.read_text())[
            "exit_code_by_key"
        ]
        for path in sorted(MUTANTS.rglob("*.meta"))
    }


def _mutmut(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "mutmut", *arguments], check=True, stdout=sys.stderr)


if __name__ == "__main__":
    main()
