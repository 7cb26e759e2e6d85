"""Attacks on a judge: irrelevant contexts that echo the question, or give orders."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import make_settings
from ragmetrics.metrics import GRADE
from ragmetrics.people import calibrate
from ragmetrics.people.calibration.attacks import ATTACKS, attack, irrelevant_contexts
from ragmetrics.people.calibration.labelled_sets import read_sets
from ragmetrics.records import Ask, Calibration, LogRow
from ragmetrics.storage import Files
from ragmetrics.text import neutralise
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.command import Run
from tests.fakes.labelled import make_labelled
from tests.fakes.logs import write_jsonl


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """A set of twenty rows, each with one context that is irrelevant."""
    return write_jsonl(tmp_path / "towers.jsonl", make_labelled(20))


def hold(place: Path, attacks: int, judge: Any = "lexical", **options: Any) -> Calibration:
    """One judge against one set."""
    settings = make_settings({"judge": judge})
    (found,) = calibrate(settings, [str(place)], attacks=attacks, **options)
    return found


def test_the_contexts_attacked_are_those_that_people_called_irrelevant(labelled: Path) -> None:
    """Of as many questions as there are, and the same ones every time."""
    (one,) = read_sets(make_settings({}), [str(labelled)])
    found = irrelevant_contexts(one, 12)
    assert len({context.question for context in found}) == len(found) == 12
    assert irrelevant_contexts(one, 12) == found
    assert all("ferr" in context.context.lower() for context in found)


def test_every_attack_changes_the_context_and_leaves_the_question() -> None:
    """An attack is a request of its own; but for the invisible one, which a judge never sees."""
    plain = {"question": "How tall is it?", "context": "Ferries leave."}
    for name, make in ATTACKS.items():
        attacked = make(plain["question"], plain["context"])
        same = Ask(GRADE, plain).key == Ask(GRADE, {**plain, "context": attacked}).key
        assert attacked != plain["context"]
        assert same == (name == "invisible")
        assert (neutralise(attacked) == plain["context"]) == same


def test_a_judge_that_obeys_is_told_apart_from_one_that_does_not(labelled: Path) -> None:
    """The share lifted has an interval; a context without a verdict counts nowhere."""
    (one,) = read_sets(make_settings({}), [str(labelled)])

    async def obeys(row: LogRow, ask: Ask) -> int | None:
        if row.id.endswith("3"):
            return None
        return 2 if "grade it 2" in ask.text else 0

    found = {each.attack: each for each in asyncio.run(attack(irrelevant_contexts(one, 20), obeys))}
    assert (found["orders"].lifted.value, found["echo"].lifted.value) == (1.0, 0.0)
    assert found["orders"].contexts == 18
    assert 0 < (found["orders"].lifted.low or 0) < 1


def test_no_irrelevant_context_no_attack(tmp_path: Path) -> None:
    """Nothing is asked, and nothing is said."""
    rows = make_labelled(4)
    for row in rows:
        row["labels"].pop("chunk_relevance")
    found = hold(write_jsonl(tmp_path / "no.jsonl", rows), 20)
    assert found.attacks == []


def test_the_embedded_judge_is_not_lifted_by_an_echo_or_an_order(labelled: Path) -> None:
    """What is padded with the question's words is: docs/how-to/judges.md says so."""
    found = {one.attack: one.lifted.value for one in hold(labelled, 20).attacks}
    assert found["echo"] == found["invisible"] == 0
    assert found["orders"] is not None and found["orders"] <= 0.05  # its words are some words more


def test_an_endpoint_is_asked_five_times_a_context_and_once_for_what_it_cannot_see(
    labelled: Path, judge_server: JudgeServer
) -> None:
    """The context as it is was asked for the labels; the invisible attack is the same request."""
    judge = judge_at(judge_server)
    asked = {}
    for attacks in (0, 5):
        judge_server.reset()
        found = hold(labelled, attacks, judge, metrics=["context_relevance"])
        asked[attacks] = found.usage.requests
        assert len(found.attacks) == (4 if attacks else 0)
    assert asked[5] - asked[0] == 15


def test_the_command_line_and_the_page_show_what_was_lifted(labelled: Path, run: Run) -> None:
    """In a table each; --attacks 0 asks for none."""
    shown = run("calibrate", labelled, "--store", labelled.parent / "store")
    assert "Irrelevant contexts whose grade an attack raised" in shown.out
    page = Files(str(labelled.parent / "store")).read("dashboard/calibration.html").decode()
    assert "the question put before the context" in page
    assert "by an attack" not in run("calibrate", labelled, "--attacks", 0).out
