"""Logs of index builds, made by a seed: the golden questions as two builds answer them.

The words are a plant's: machines with names of their own, of each how often it is serviced, by
whom, and what for. A question's contexts are the passage about its machine and two of others.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fakes.logs import write_jsonl

Row = dict[str, Any]

_SOUNDS = ("mar", "lo", "ven", "tis", "kor", "ra", "bel", "dun", "shi", "pol", "gre", "nax", "ul")
_MACHINES = ("pump", "press", "kiln", "conveyor", "mixer", "boiler", "crane", "lathe", "dryer")
_TEAMS = ("night shift", "tool room", "fitters", "electricians", "apprentices", "supplier")
_PARTS = ("seals", "bearings", "filters", "belts", "valves", "brushes", "gaskets", "nozzles")
_STUFFS = ("ceramic", "brass", "rubber", "copper", "nylon", "steel", "carbon", "leather")
_HALLS = ("north hall", "paint shop", "foundry", "yard", "packing line", "cold store")
_ASIDES = (
    "Its logbook hangs beside the door.",
    "Spare keys are kept at the gate.",
    "Visitors wear a helmet here.",
    "Deliveries come by the western ramp.",
)


def make_builds(
    folder: Path, seed: int, *, questions: int = 150, damage: float = 0.15
) -> list[Row]:
    """Write the logs of the builds `serving`, `healthy` and `damaged` into folders of their
    names; return the golden rows.

    A healthy build ranks anew, finds other passages beside the right one, and differs in two rows
    as indexes do. A damaged one has, in a share of the rows, the contexts of other questions.
    """
    draw = random.Random(seed)
    facts = _facts(draw, questions)
    golden = [_golden(number, fact) for number, fact in enumerate(facts)]
    passages = [_passage(draw, fact) for fact in facts]
    serving = [_retrieve(draw, passages, number) for number in range(questions)]
    healthy = _again(draw, passages, serving)
    broken = _broken(draw, healthy, damage)
    for build, contexts in (("serving", serving), ("healthy", healthy), ("damaged", broken)):
        rows = [
            {**row, "retrieved_contexts": passages, "index_build": build}
            for row, passages in zip(golden, contexts, strict=True)
        ]
        write_jsonl(folder / build / "log.jsonl", rows)
    return golden


def _facts(draw: random.Random, count: int) -> list[dict[str, str]]:
    names: dict[str, None] = {}
    while len(names) < count:
        names["".join(draw.sample(_SOUNDS, 3)).capitalize()] = None
    return [
        {
            "name": name,
            "machine": draw.choice(_MACHINES),
            "weeks": str(draw.randint(2, 60)),
            "hours": str(draw.randint(1, 12)),
            "team": draw.choice(_TEAMS),
            "part": f"{draw.choice(_STUFFS)} {draw.choice(_PARTS)}",
            "hall": draw.choice(_HALLS),
        }
        for name in names
    ]


def _golden(number: int, fact: dict[str, str]) -> Row:
    asked = "How often is the {name} {machine} serviced, and which parts are replaced?"
    known = (
        "The {name} {machine} is serviced every {weeks} weeks by the {team}. "
        "The {part} of the {name} are replaced at each service, which takes {hours} hours."
    )
    return {
        "id": f"golden-{number:04d}",
        "user_input": asked.format(**fact),
        "reference": known.format(**fact),
    }


def _passage(draw: random.Random, fact: dict[str, str]) -> str:
    told = [
        "The {name} {machine} stands in the {hall}.",
        "Every {weeks} weeks the {name} {machine} is serviced by the {team}.",
        "At each service of the {name} the {part} are replaced, which takes {hours} hours.",
    ]
    more = draw.choice(_ASIDES)
    return " ".join([*told, more]).format(**fact)


def _retrieve(draw: random.Random, passages: Sequence[str], number: int) -> list[str]:
    """The right passage first in most rows, later in some, and not at all in one of ten."""
    others = draw.sample([passage for passage in passages if passage is not passages[number]], 3)
    if draw.random() < 0.1:
        return others
    found = [passages[number], *others[:2]]
    if draw.random() < 0.3:
        draw.shuffle(found)
    return found


def _again(
    draw: random.Random, passages: Sequence[str], served: Sequence[list[str]]
) -> list[list[str]]:
    """The rows from an index that was built anew: one right passage is lost, and one is found."""
    had = [number for number, found in enumerate(served) if passages[number] in found]
    lacked = [number for number in range(len(served)) if number not in had]
    finds = {*had, *lacked[:1]} - {draw.choice(had)}
    rows = []
    for number, served_ids in enumerate(served):
        kept = [passages[number]] if number in finds else []
        others = [passage for passage in passages if passage != passages[number]]
        kept += draw.sample(others, len(served_ids) - len(kept))
        if draw.random() < 0.3:
            draw.shuffle(kept)
        rows.append(kept)
    return rows


def _broken(draw: random.Random, contexts: Sequence[list[str]], damage: float) -> list[list[str]]:
    """The contexts where those of a share of the rows went to one another."""
    hit = draw.sample(range(len(contexts)), round(damage * len(contexts)))
    broken = list(contexts)
    for place, source in zip(hit, [*hit[1:], *hit[:1]], strict=True):
        broken[place] = contexts[source]
    return broken
