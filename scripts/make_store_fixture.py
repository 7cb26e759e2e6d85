"""Make the fixture store: one of every record that the product writes.

    python -m scripts.make_store_fixture store      write the store anew, and all that is expected
    python -m scripts.make_store_fixture numbers    write its numbers anew, and the texts
    python -m scripts.make_store_fixture texts      write the texts of pages and messages anew
    python -m scripts.make_store_fixture check      say what differs from what is expected

The store stands for all stores that were written before: later versions read it, and write none
of it. So `store` is for records that it lacks, and its numbers must come out as they were.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes import store_world as world
from tests.fakes.clients import JudgeServer
from tests.fakes.labelled import make_labelled, right, write_judge, wrong
from tests.fakes.logs import write_jsonl
from tests.fakes.processes import running
from tests.fakes.slack import SlackServer
from tests.fakes.store_commands import Commands
from tests.fakes.store_reading import (
    EXPECTED,
    PACKED,
    TEXTS,
    count,
    differences,
    numbers_json,
    observe,
    pack,
    unpacked,
)

Step = Callable[[], None]
PORT = "18473"
"""Of the judge: its address is part of what names its replies."""
RULES = [
    {"metric": "context_recall", "max_drop": 0.1, "versus": "previous"},
    {"metric": "context_relevance", "max_drop": 0.1, "versus": "previous"},
]


@dataclass(frozen=True)
class Workshop:
    """Where stores are made: a folder, a judge, and Slack."""

    folder: Path
    judge: JudgeServer
    slack: SlackServer

    def commands(self, name: str) -> Commands:
        """Commands in the folder of one store, with its golden set."""
        folder = self.folder / name
        folder.mkdir()
        world.write_golden(folder)
        return Commands(folder, {"SLACK_WEBHOOK_URL": self.slack.url, "OPENAI_API_KEY": "testing"})


def main() -> None:
    """Do what was asked."""
    parser = argparse.ArgumentParser(description="Make the fixture store of the tests.")
    parser.add_argument("what", choices=("store", "numbers", "texts", "check"))
    what = parser.parse_args().what
    if what == "store":
        make_store()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        slack = stack.enter_context(SlackServer().running())
        judge = JudgeServer(stack.enter_context(running("tests.fakes.judge")))
        numbers, texts = observe(unpacked(Path(folder)), slack, judge)
    if what == "check":
        found = differences(numbers, texts)
        print("\n".join(found) or "as expected")
        sys.exit(bool(found))
    if what in ("store", "numbers") or not EXPECTED.exists():
        EXPECTED.parent.mkdir(parents=True, exist_ok=True)
        EXPECTED.write_text(numbers_json(numbers), encoding="utf-8")
    write_texts(texts)


def write_texts(texts: Mapping[str, str]) -> None:
    """Write the texts in place of those that are there; print which numbers in them change."""
    for name, text in texts.items():
        before = count((TEXTS / name).read_text("utf-8")) if (TEXTS / name).exists() else {}
        now = count(text)
        changed = {one for one in {*before, *now} if before.get(one) != now.get(one)}
        if before and changed:
            print(f"{name}: other numbers: {', '.join(sorted(changed))}")
    shutil.rmtree(TEXTS, ignore_errors=True)
    for name, text in texts.items():
        path = TEXTS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def make_store() -> None:
    """Write the stores and pack them."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        port = stack.enter_context(running("tests.fakes.judge", "--port", PORT))
        slack = stack.enter_context(SlackServer().running())
        shop = Workshop(Path(folder), JudgeServer(port), slack)
        for make in (make_plain, make_judged, make_redacted):
            make(shop)
        pack(shop.folder, PACKED)


def make_plain(shop: Workshop) -> None:
    """The lexical judge: twelve nights, a rerun, alerts of all kinds, gates, calibrations."""
    command = shop.commands("plain")
    world.write_settings(command.folder)
    make_nights(shop, command)
    make_gates(command)
    make_calibrations(command)
    command.ragmetrics("compare", world.day(5), world.day(7), "--by", "section", "--page")


def make_nights(shop: Workshop, command: Commands) -> None:
    """Two drops: the first recovers, of the second the last night's message waits in the outbox."""
    for number in range(12):
        world.write_night(command.folder, number)
        if number == 11:
            shop.slack.fail("500")
        command.night(world.day(number))
        if number == 2:
            world.write_night(command.folder, number, late=True)
            command.night(world.day(number))
        if number == 10:
            silence(command)
    shop.slack.fail(None)


def silence(command: Commands) -> None:
    """Acknowledge the first alert that fires, and snooze the second."""
    alerts = command.json("alerts", "list")["alerts"]
    firing = [alert["key"] for alert in alerts if alert["state"] == "firing"]
    said = ("--by", "Ada", "--note", "the index is being rebuilt")
    command.ragmetrics("alerts", "ack", firing[0], *said)
    command.ragmetrics("alerts", "snooze", firing[1], "--until", world.day(25), *said)


def make_gates(command: Commands) -> None:
    """A build that passes, one that is held, one without a log, one replayed, and no verdict."""
    for build, lost in (("serving", 0.05), ("healthy", 0.0), ("damaged", 0.4)):
        world.write_build(command.folder, build, lost)
    for build in ("healthy", "damaged"):
        command.ragmetrics("gate", "--build", build, "--against", "serving")
    command.ragmetrics("replay", "--build", "replayed")
    command.ragmetrics("gate", "--build", "replayed", "--against", "serving", ends=(0, 1, 2))
    world.write_settings(command.folder, retriever=None)
    command.ragmetrics("gate", "--build", "absent", "--against", "serving", ends=(2,))
    world.write_settings(command.folder)
    command.undecided("index build: build: not there", '{"dataset": "helpdesk"}')


def make_calibrations(command: Commands) -> None:
    """The lexical judge, and one that drifts from its first calibration to its second."""
    labelled = write_jsonl(command.folder / "labelled.jsonl", make_labelled(60))
    command.ragmetrics("calibrate", "labelled.jsonl", "--store", "store")
    for reply in (right, lambda metric, asked: (right, wrong)[_odd(asked)](metric, asked)):
        write_judge(command.folder / "judge.jsonl", labelled, reply)
        judge = ("--judge", "recorded:judge.jsonl", "--attacks", "0")
        command.ragmetrics("calibrate", "labelled.jsonl", *judge, "--store", "store")


def _odd(asked: Any) -> bool:
    return bool(int(asked.ask.data["question"].split("tower ")[1].rstrip("?")) % 2)


def make_judged(shop: Workshop) -> None:
    """A paid judge: all rows, a sample, a budget, a panel, batches, and batches that wait."""
    command = shop.commands("judged")
    judge = {"name": "openai", "model": "fake", "base_url": shop.judge.base_url, **world.PRICES}
    batch = {**judge, "name": "openai-batch", "poll_seconds": 0.1}
    kinds: list[dict[str, Any]] = [
        {"judge": judge},
        {"judge": judge, "sample": {"rows": 25, "strata": ["section"]}},
        {"judge": judge, "budget": {"max_requests": 100}},
        {"judges": [judge, {**judge, "model": "fake-b"}, "lexical"], "aggregate": "median"},
        {"judge": batch},
        {"judge": {**batch, "wait_seconds": 0.5}},
    ]
    for number, kind in enumerate(kinds):
        world.write_night(command.folder, number)
        kind = {"alerts": {"rules": RULES}, "retriever": None, "shards": 2, **kind}
        world.write_settings(command.folder, **kind)
        if number == len(kinds) - 1:
            shop.judge.batch_faults(delay_seconds=600)
        command.night(world.day(number))


def make_redacted(shop: Workshop) -> None:
    """A store whose texts are hidden: three nights, the third with a drop, and a gate."""
    command = shop.commands("redacted")
    world.write_settings(command.folder, redact=True)
    for number in (4, 5, 7):
        world.write_night(command.folder, number)
        command.night(world.day(number))
    for build, lost in (("serving", 0.05), ("damaged", 0.4)):
        world.write_build(command.folder, build, lost)
    command.ragmetrics("gate", "--build", "damaged", "--against", "serving")


if __name__ == "__main__":
    main()
