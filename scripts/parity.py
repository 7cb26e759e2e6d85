"""The `ragas_*` twins beside ragas itself, on the same rows and the same local judge.

    make parity        (makes ragas's environments first)
    python -m scripts.parity [--rows 50]

ragas runs under Pythons of its own: $RAGAS_PYTHON (0.4.3) and $RAGAS_0_1_PYTHON (0.1.10).
The judge answers by the hash of what it is sent. ragas 0.1 also asks where there is nothing to
score; those requests are shown, as "only by ragas". Exit code 0: no score differs, and what the
twins sent was sent by ragas, byte by byte and as often; 1: something differs; 2: ragas 0.4.3 is
not there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ragmetrics
from ragmetrics.config import make_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.processes import running

ROOT = Path(__file__).parents[1]
SCRIPT = Path(__file__).with_name("parity_ragas.py")
TWINS: Mapping[str, Mapping[str, Any]] = {
    "ragas_context_relevancy": {},
    "ragas_context_recall": {},
    "ragas_response_relevancy": {},
    "ragas_context_relevance": {"alone": "first"},  # as ragas.metrics computes it
}
Row = dict[str, Any]


@dataclass(frozen=True)
class Environment:
    """Where one version of ragas is installed."""

    version: str
    variable: str
    folder: str
    packages: str

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return Path(os.environ.get(self.variable) or ROOT / self.folder / "bin" / "python")

    @property
    def installed(self) -> bool:
        """Whether that interpreter has this version."""
        version = "from importlib.metadata import version; print(version('ragas'))"
        try:
            found = subprocess.run(
                [str(self.python), "-c", version], capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            return False
        return found.stdout.strip() == self.version

    @property
    def absent(self) -> str:
        """What to say where there is none."""
        return (
            f"ragas {self.version} is not there ({self.python}). To install it:\n"
            f"  python3 -m venv {self.folder}\n"
            f"  {self.folder}/bin/pip install {self.packages}"
        )

    def run(self, server: JudgeServer, rows: Sequence[Row]) -> dict[str, Any]:
        """What ragas gives for the rows."""
        finished = subprocess.run(
            [str(self.python), str(SCRIPT), f"http://127.0.0.1:{server.port}"],
            input=json.dumps(rows),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env={**os.environ, "RAGAS_DO_NOT_TRACK": "true"},
        )
        # Before its result ragas prints what it likes.
        found: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
        return found


ENVIRONMENTS = (
    Environment(
        "0.4.3",
        "RAGAS_PYTHON",
        ".venv-ragas",
        '"ragas==0.4.3" "langchain-community<0.4" "langchain<1"',
    ),
    Environment(
        "0.1.10",
        "RAGAS_0_1_PYTHON",
        ".venv-ragas-0.1",
        '"ragas==0.1.10" "langchain<0.3" "langchain-openai<0.2" "pyarrow<19" "datasets<3"',
    ),
)


def main() -> int:
    """Compare all twins whose ragas is installed."""
    parser = argparse.ArgumentParser(prog="python -m scripts.parity", description=__doc__)
    parser.add_argument("--rows", type=int, default=50)
    rows = make_rows(parser.parse_args().rows)
    missing = [environment for environment in ENVIRONMENTS if not environment.installed]
    for library in missing:
        print(library.absent, file=sys.stderr)
    if ENVIRONMENTS[0] in missing:
        return 2
    same = True
    with running("tests.fakes.judge") as port:
        server = JudgeServer(port)
        for environment in ENVIRONMENTS:
            if environment in missing:
                continue
            theirs = environment.run(server, rows)
            for name, their in theirs["metrics"].items():
                line, equal = compared(name, their, ours(server, name, rows))
                print(f"{line}, against ragas {theirs['version']}", flush=True)
                same = same and equal
    return 0 if same else 1


def ours(server: JudgeServer, name: str, rows: Sequence[Row]) -> dict[str, Any]:
    """What the twin gives for the rows, in the form that ragas's side prints."""
    server.reset()
    judge = {
        "name": "openai",
        "model": "judge",
        "base_url": server.base_url,
        "concurrency": 1,  # repeated prompts keep their order
        "reasks": 4,  # ragas asks for a missing grade five times in all
    }
    result = ragmetrics.evaluate(
        list(rows), metrics=[{name: dict(TWINS[name])}], settings=make_settings({"judge": judge})
    )
    by_id = {record["id"]: record["value"] for record in result.records()}
    return {
        "scores": [by_id[row["id"]] for row in rows],
        "messages": server.stats()["by_messages"],
    }


def compared(name: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> tuple[str, bool]:
    """One line on one metric, and whether nothing differs."""
    pairs = list(zip(theirs["scores"], ours["scores"], strict=True))
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    lone = sum((a is None) != (b is None) for a, b in pairs)
    largest = max((abs(a - b) for a, b in both), default=0.0)
    wanted = {key: times for key, times in theirs["messages"].items() if key in ours["messages"]}
    identical = wanted == ours["messages"]
    vain = sum(theirs["messages"].values()) - sum(wanted.values())
    line = (
        f"{name:24} {len(pairs)} rows, {len(both)} scored by both, {lone} by one only: "
        f"largest difference {largest}; {sum(wanted.values())} requests "
        f"{'byte-identical' if identical else 'DIFFERENT'}, {vain} only by ragas"
    )
    return line, identical and not lone and largest == 0.0


_TEXT = """
tower Eiffel metres 1889 "quoted" {braces} {{twice}} {question} it's Dr. e.g. 324.5 % naïve Ærø
Größe 塔は赤い。 برج émigré 🗼 \\n \\u00e9 <b>bold</b> & [1] ``` # * opened built the of was in
"""
_WORDS = _TEXT.split()
_STOPS = (".", ".\n", "?", "!")
_SPECIAL: Sequence[Row] = (  # what ragas treats apart, and characters that JSON must escape
    {"retrieved_contexts": []},
    {"retrieved_contexts": ["", " \n"]},
    {"user_input": "Is the tower tall?", "retrieved_contexts": [" the tower\n"]},
    {"user_input": "The same.", "retrieved_contexts": ["The same."]},
    {"response": "\u2028 \t\x01\x7f \"'\\ /"},
)


def make_rows(count: int) -> list[Row]:
    """Rows of every kind of text, the last of them special; no two share a prompt."""
    dice = random.Random(0)

    def text(sentences: int) -> str:
        return " ".join(
            " ".join(dice.choices(_WORDS, k=dice.randint(3, 9))) + dice.choice(_STOPS)
            for _ in range(sentences)
        )

    rows: list[Row] = [
        {
            "id": f"row-{number}",
            "user_input": f"Question {number}: {text(1)}",
            "retrieved_contexts": [text(dice.randint(1, 4)) for _ in range(dice.randint(1, 5))],
            "response": f"Response {number}: {text(2)}",
            "reference": f"Reference {number}: {text(3)}",
        }
        for number in range(count)
    ]
    for row, change in zip(reversed(rows), _SPECIAL, strict=False):
        row.update(change)
    return rows


if __name__ == "__main__":
    sys.exit(main())
