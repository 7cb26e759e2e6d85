"""The world of the fixture store: a help desk of invented machines, its nights and its builds.

Everything is drawn by seeds, so the same call gives the same bytes. `scripts.make_store_fixture`
writes a store of it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from tests.builders import save_settings
from tests.fakes.logs import write_jsonl

Row = dict[str, Any]

FIRST = date(2026, 11, 2)
QUESTIONS = 60
SECTIONS = ("pumps", "presses", "kilns")
NEXT = FIRST + timedelta(days=12)
"""The night that is scored upon the finished store."""

_PARTS = ("seals", "bearings", "filters", "belts", "valves", "brushes", "gaskets", "nozzles")
_TEAMS = ("night shift", "tool room", "fitters", "electricians", "supplier")
_ASIDES = (
    "Visitors wear a helmet in this hall.",
    "Deliveries come by the western ramp.",
    "Spare keys are kept at the gate.",
    "The canteen opens at seven.",
)
LOST = {
    6: {"pumps": 0.6},
    7: {"pumps": 1.0, "presses": 0.5},
    10: {"kilns": 0.7},
    11: {"kilns": 0.7},
    12: {"kilns": 0.7, "presses": 0.8},
}
"""Of a night, by number: the share of a section's passages that its index lacks."""

RULES: list[dict[str, Any]] = [
    {"metric": "context_recall", "max_drop": 0.05, "versus": "trailing:7"},
    {"metric": "context_recall", "min": 0.5, "by": "section", "min_rows": 10, "for": 1},
    {"metric": "context_relevance", "max_drop": 0.1, "versus": "previous", "severity": "warning"},
    {"metric": "mrr", "max_drop": 0.1, "versus": "trailing:3"},
]
PRICES = {"usd_per_million_prompt_tokens": 0.4, "usd_per_million_completion_tokens": 1.6}


def day(number: int) -> date:
    """The date of a night."""
    return FIRST + timedelta(days=number)


def write_settings(folder: Path, **changes: Any) -> Path:
    """Write `ragmetrics.yaml`, with all paths relative to its folder."""
    values: dict[str, Any] = {
        "dataset": "helpdesk",
        "logs": "logs/dt={date}/",
        "store": "store",
        "golden": "golden.jsonl",
        "metrics": ["context_relevance", "context_recall", "mrr"],
        "shards": 1,
        "segments": ["section"],
        "alerts": {"rules": RULES},
        "gate": {"logs": "builds/{build}/"},
        "retriever": {"entrypoint": "tests.fakes.store_world:search"},
    }
    return save_settings(folder, {**values, **changes})


def write_golden(folder: Path) -> None:
    """Write the golden set: the questions with their references."""
    write_jsonl(
        folder / "golden.jsonl",
        (
            {
                "id": f"golden-{number:03d}",
                "user_input": _question(number),
                "reference": _reference(number),
                "tags": {"section": _section(number)},
            }
            for number in range(QUESTIONS)
        ),
    )


def write_night(folder: Path, number: int, *, late: bool = False) -> None:
    """Write the log of a night; a `late` one has the rows of a file that came afterwards."""
    numbers = range(QUESTIONS - 6, QUESTIONS) if late else range(QUESTIONS - 6)
    rows: list[Any] = [_logged(number, question) for question in numbers]
    if number == 3:
        rows.append("{this line is no JSON")
    name = "late.jsonl" if late else "night.jsonl"
    write_jsonl(folder / "logs" / f"dt={day(number)}" / name, rows)


def write_build(folder: Path, build: str, lost: float) -> None:
    """Write the log of an index build that lacks a share of the passages; all else is alike."""
    rows = [
        {
            "id": f"{build}-{number:03d}",
            "user_input": _question(number),
            "retrieved_contexts": _retrieved(random.Random(f"build/{number}"), number, lost),
            "reference": _reference(number),
            "tags": {"section": _section(number)},
            "index_build": build,
        }
        for number in range(QUESTIONS)
    ]
    write_jsonl(folder / "builds" / build / "log.jsonl", rows)


def search(user_input: str, build: str) -> Row:
    """The retriever that a replay asks."""
    draw = random.Random(f"{build}/{user_input}")
    number = int(user_input.split("M-")[1].split()[0])
    return {"retrieved_contexts": _retrieved(draw, number, 0.02)}


def _logged(night: int, number: int) -> Row:
    draw = random.Random(f"night/{night}/{number}")
    section = _section(number)
    found = _retrieved(draw, number, 0.05 + LOST.get(night, {}).get(section, 0.0))
    moment = datetime.combine(day(night), time(8), UTC) + timedelta(minutes=number)
    return {
        "id": f"{night:02d}-{number:03d}",
        "timestamp": moment.isoformat(),
        "user_input": _question(number),
        "retrieved_contexts": found,
        "retrieved_context_ids": [f"kb-{_digest(text)}" for text in found],
        "reference_context_ids": [f"kb-{_digest(_passage(number))}"],
        "response": _sentences(number)[1] if _passage(number) in found else "That is not known.",
        "reference": _reference(number),
        "index_build": f"idx-{1 + night // 6}",
        "tags": {"section": section, "channel": ("web", "app", "phone")[number % 4 % 3]},
    }


def _section(number: int) -> str:
    return SECTIONS[number % len(SECTIONS)]


def _machine(number: int) -> str:
    return f"M-{number:03d} of the {_section(number)}"


def _question(number: int) -> str:
    return f"How often is machine {_machine(number)} serviced, and what is replaced?"


def _sentences(number: int) -> Sequence[str]:
    part, team = _PARTS[number % 7], _TEAMS[number % 5]
    return (
        f"Machine {_machine(number)} stands in hall {number % 9}.",
        f"Machine {_machine(number)} is serviced every {number + 3} weeks by the {team}.",
        f"The {part} of machine {_machine(number)} are replaced at each service.",
    )


def _passage(number: int) -> str:
    return " ".join([*_sentences(number), _ASIDES[number % 4]])


def _reference(number: int) -> str:
    return " ".join(_sentences(number)[1:])


def _retrieved(draw: random.Random, number: int, lost: float) -> list[str]:
    """Three passages: the right one at some rank, cut short in some rows, or missing."""
    chance, cut, rank = draw.random(), draw.random(), draw.choice((0, 0, 0, 1, 2))
    others = [_passage(one) for one in draw.sample(range(QUESTIONS), 4) if one != number]
    if chance < lost:
        return others[:3]
    right = _passage(number) if cut < 0.85 else " ".join(_sentences(number)[:2])
    return [*others[:rank], right, *others[rank:2]]


def _digest(text: str) -> str:
    return f"{random.Random(text).randrange(16**6):06x}"
