"""Logs of three teams, in three layouts: nights of changing questions, good or broken.

sparse      our own fields, by folders of dates: forty rows of twenty contexts, one row in seven
            with contexts of use, so that the relevance of contexts has a mean below 0.1 and a night
            says little of it; no reference
spreadsheet a table a night with other names, four sections
service     nested records of a service, with references; three of twenty answers are not found
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd

FIRST = date(2026, 11, 1)
LOREM = (
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit.",
    "Sed do eiusmod tempor incididunt ut labore et dolore magna aliqua.",
    "Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris.",
)
SECTIONS = ("billing", "travel", "hardware", "access")
_NOUNS = ("tower", "bridge", "harbour", "tunnel", "station", "museum", "stadium", "library")
_FACTS = ("height", "length", "age", "owner", "colour", "address")
_OTHER = (
    "Ferries leave the harbour every hour and carry bicycles.",
    "Tickets are sold at the counter until eight in the evening.",
    "The canteen offers soup, bread and salad on weekdays.",
    "Parking is free on Sundays and public holidays.",
)

Question = Mapping[str, Any]


@dataclass(frozen=True)
class ShapedLog:
    """A team's log: how its nights are written, and what is given to `init`."""

    name: str
    sample: str
    """The argument of `ragmetrics init`, in the folder of the log."""
    write: Callable[[Path, date, Sequence[Question]], None]
    contexts: int
    found: float
    """Share of the questions whose answer is retrieved on a good night."""
    rows: int = 80
    answers: int = 1
    """Contexts that have the answer, where it is retrieved."""

    def night(
        self, folder: Path, number: int, *, lost: Sequence[str] = (), found: float = 1
    ) -> date:
        """Write a night, so many days after the first. The sections `lost` get texts about nothing;
        `found` is the share of the usual answers that are retrieved.
        """
        day = FIRST + timedelta(number)
        self.write(folder, day, _questions(self, number, self.found * found, lost))
        return day


def _questions(log: ShapedLog, number: int, found: float, lost: Sequence[str]) -> list[Question]:
    """The questions of a night: others every night, with as many contexts each."""
    random, contexts = Random(number), log.contexts
    rows = []
    for row in range(log.rows):
        noun, fact = random.choice(_NOUNS), random.choice(_FACTS)
        name = f"{noun} {random.randrange(10_000)}"
        answer = f"The {fact} of {name} is {random.randrange(100)} units."
        section = SECTIONS[row % len(SECTIONS)]
        texts = [random.choice(_OTHER) for _ in range(contexts)]
        if random.random() < found:
            start = random.randrange(min(3, contexts))
            texts[start : start + log.answers] = [answer] * log.answers
        if section in lost:
            texts = [random.choice(LOREM) for _ in range(contexts)]
        rows.append(
            {
                "question": f"What is the {fact} of {name}?",
                "contexts": texts,
                "answer": answer,
                "section": section,
            }
        )
    return rows


def _lines(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


def _sparse(folder: Path, day: date, rows: Sequence[Question]) -> None:
    records = [
        {
            "user_input": row["question"],
            "retrieved_contexts": row["contexts"],
            "response": row["answer"],
            "timestamp": f"{day}T12:00:00Z",
            "tags": {"section": row["section"]},
        }
        for row in rows
    ]
    _lines(folder / "logs" / f"dt={day}" / "part-0.jsonl", records)


def _spreadsheet(folder: Path, day: date, rows: Sequence[Question]) -> None:
    frame = pd.DataFrame(
        {
            "query": [row["question"] for row in rows],
            "context": ["\n---\n".join(row["contexts"]) for row in rows],
            "result": [row["answer"] for row in rows],
            "section": [row["section"] for row in rows],
        }
    )
    (folder / "logs").mkdir(exist_ok=True)
    frame.to_csv(folder / "logs" / f"export-{day:%Y%m%d}.csv", index=False)


def _service(folder: Path, day: date, rows: Sequence[Question]) -> None:
    records = [
        {
            "request": {"body": {"question": row["question"], "top_k": 3}},
            "retrieval": {"documents": [{"text": text} for text in row["contexts"]]},
            "generation": {"answer": row["answer"]},
            "expected": {"ground_truth": row["answer"]},
        }
        for row in rows
    ]
    _lines(folder / "logs" / f"{day:%Y/%m/%d}" / "service.jsonl", records)


SPARSE = ShapedLog("sparse", "logs", _sparse, 20, 0.14, rows=40, answers=10)
SPREADSHEET = ShapedLog("spreadsheet", "logs", _spreadsheet, 3, 0.9)
SERVICE = ShapedLog("service", "logs", _service, 3, 0.85)
SHAPED_LOGS = (SPARSE, SPREADSHEET, SERVICE)
