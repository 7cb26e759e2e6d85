"""Nights of a made-up help desk, for the engine's benchmarks: the same in every run.

A row is a question of some 12 words, five contexts of some 900 characters that speak of it, a
response of two or three sentences and a reference of three. ragas sends some 5,300 prompt tokens
for one. What repeats, and how:

- `asked_again` of the rows put a question that an earlier row put. The same index finds the same
  contexts; of these, `moved` are others, as after an update during the night. The assistant words
  its response anew.
- `second_night` has the first night's questions. Where the index did not change, retrieval and,
  at temperature 0, the response are those of the first night; where it did, all contexts and the
  response are new.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]

CONTEXTS = 5
_CONTEXT_CHARS = 915
_KINDS = [
    "boiler",
    "pump",
    "freezer",
    "router",
    "printer",
    "heater",
    "scanner",
    "dryer",
    "mower",
    "charger",
]
_PARTS = [
    "filter",
    "valve",
    "sensor",
    "battery",
    "display",
    "fan",
    "gasket",
    "cable",
    "hinge",
    "antenna",
    "drum",
    "blade",
]
_ACTS = ("replaced", "cleaned", "tested", "calibrated", "tightened", "inspected", "drained")
_PLACES = ("under the lid", "behind the panel", "beside the inlet", "above the tray", "at the back")
_PEOPLE = ("a technician", "the owner", "the service desk", "an electrician", "the installer")
_TOOLS = ("a soft brush", "a torque key", "a dry cloth", "the supplied key", "a multimeter")
_FACTS: Sequence[str] = (
    "The {part} of the {name} must be {act} by {who} after every {n} hours of use",
    "Before the {part} is {act}, switch the {name} off and wait for {n} minutes",
    "You find the {part} {place}, held by {m} screws that need {tool}",
    "A {part} that was not {act} in time lowers the output of the {name} by {n} per cent",
    "The warranty of the {name} covers the {part} for {m} years when {who} has {act} it",
    "If the light blinks {m} times, the {part} {place} has to be {act} at once",
    "Since version {m}.{n} the {name} reports in its log when its {part} was last {act}",
    "An order for a new {part} with the number {n}-{m} is delivered within {m} working days",
)
_QUESTIONS: Sequence[str] = (
    "How often must the {part} of the {name} be {act}, and by whom?",
    "What do I have to do before the {part} of the {name} is {act}?",
    "Where do I find the {part} of the {name}, and what does it need?",
    "For how long does the warranty of the {name} cover a {part}, once {act}?",
)


def night(count: int, *, asked_again: float = 0.0, moved: int = 0) -> list[Row]:
    """The rows of one night."""
    again = random.Random("again")
    rows: list[Row] = []
    firsts: list[int] = []
    for number in range(count):
        # An even spread hits the share to the row, whatever the count.
        if firsts and number - len(firsts) < round(asked_again * (number + 1)):
            rows.append(_asked_again(again.choice(firsts), number, moved))
        else:
            firsts.append(number)
            rows.append(make_row(number, version=0))
    return rows


def second_night(first: Sequence[Row], shared: float, *, reworded: bool = False) -> list[Row]:
    """The same questions a day later; `reworded`: every response is new."""
    rows = []
    for number, row in enumerate(first):
        changed = round((number + 1) * (1 - shared)) > round(number * (1 - shared))
        later = make_row(number, version=1) if changed else dict(row)
        if reworded:
            later["response"] = make_row(number, version=2)["response"]
        rows.append({**later, "id": f"later-{number}"})
    return rows


def write(rows: Sequence[Row], path: Path) -> Path:
    """Write the rows as JSONL."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def repeated_pairs(rows: Sequence[Row]) -> float:
    """Share of the (question, context) pairs that an earlier row had."""
    pairs = [(row["user_input"], context) for row in rows for context in row["retrieved_contexts"]]
    return 1 - len(set(pairs)) / len(pairs)


def make_row(number: int, version: int) -> Row:
    """One row; another `version` has the same question and reference, and all else new."""
    fixed, draw = random.Random(f"{number}"), random.Random(f"{number}/{version}")
    subject = _subject(fixed, number)
    question = fixed.choice(_QUESTIONS).format(**subject)
    reference = " ".join(_sentence(fixed, subject) for _ in range(3))
    known = reference.split(". ")
    contexts = [_context(draw, subject, number, known if place < 2 else ()) for place in range(5)]
    return {
        "id": f"row-{number}",
        "user_input": question,
        "retrieved_contexts": contexts,
        "response": _response(draw, subject, known),
        "reference": reference,
    }


def _asked_again(first: int, number: int, moved: int) -> Row:
    """The question of row `first` once more."""
    row, later = make_row(first, version=0), make_row(first, version=1 + number)
    stayed = CONTEXTS - moved
    contexts = [*row["retrieved_contexts"][:stayed], *later["retrieved_contexts"][stayed:]]
    return {**later, "id": f"row-{number}", "retrieved_contexts": contexts}


def _subject(draw: random.Random, number: int) -> Mapping[str, str]:
    letters = "".join(draw.choices("ABCDEFGHKLMNPRSTVX", k=2))
    name = f"{letters}-{1000 + number} {draw.choice(_KINDS)}"
    return {"name": name, "part": draw.choice(_PARTS), "act": draw.choice(_ACTS)}


def _sentence(draw: random.Random, subject: Mapping[str, str]) -> str:
    fact = draw.choice(_FACTS).format(
        **subject,
        who=draw.choice(_PEOPLE),
        place=draw.choice(_PLACES),
        tool=draw.choice(_TOOLS),
        n=draw.randint(10, 990),
        m=draw.randint(2, 9),
    )
    return f"{fact}."


def _context(
    draw: random.Random, subject: Mapping[str, str], number: int, known: Sequence[str]
) -> str:
    """A chunk of a manual: of the device asked about if it holds what is known, or of another."""
    other = {**_subject(draw, number + draw.randint(1, 900)), "part": subject["part"]}
    about = subject if known else other
    sentences = [f"{one.rstrip('.')}." for one in known if draw.random() < 0.6]
    while sum(map(len, sentences)) + len(sentences) < _CONTEXT_CHARS - 40:
        sentences.append(_sentence(draw, {**about, "part": draw.choice(_PARTS)}))
    draw.shuffle(sentences)
    return " ".join(sentences)


def _response(draw: random.Random, subject: Mapping[str, str], known: Sequence[str]) -> str:
    opening = draw.choice(("According to the manual:", "In short:", "Here is what I found:"))
    said = [*draw.sample(list(known), 1), *(_sentence(draw, subject) for _ in range(2))]
    return " ".join([opening, *(f"{one.rstrip('.')}." for one in said[: draw.randint(2, 3)])])


def rows_of(path: Path) -> Iterator[Row]:
    """The rows of a log."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)
