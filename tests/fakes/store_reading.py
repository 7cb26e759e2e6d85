"""What the code at hand makes of the fixture store: its numbers, and the texts around them.

tests/fixtures/stores/VERSION/store.zip     the stores `plain`, `judged` and `redacted`, and a next
                                            night, as that version wrote them
tests/fixtures/stores/VERSION/numbers.json  every number and state: it stays as it is
tests/fixtures/texts/                       the visible text of pages and messages of the newest
                                            one: wording may change

A number that is expected has to be there; more may be there.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from packaging.version import Version

from ragmetrics.comparison import load_gates
from ragmetrics.people import load_history
from ragmetrics.storage import Files, Runs
from tests.fakes import store_world as world
from tests.fakes.clients import JudgeServer
from tests.fakes.processes import ROOT
from tests.fakes.slack import SlackServer
from tests.fakes.store_commands import Commands

FIXTURES = ROOT / "tests" / "fixtures"
RELEASES = sorted((FIXTURES / "stores").iterdir(), key=lambda one: Version(one.name))
"""A folder for each released version that changed what is stored, the newest last."""
PACKED = RELEASES[-1] / "store.zip"
EXPECTED = RELEASES[-1] / "numbers.json"
TEXTS = FIXTURES / "texts"

Seen = tuple[dict[str, Any], dict[str, str]]
"""Numbers by what they are of, and texts by file name."""

_STORES = ("plain", "judged", "redacted")
_PACKED = ("ragmetrics.yaml", "golden.jsonl", "judge.jsonl", "store/**/*", "builds/*/*")
_WORDS = {
    *("rule", "message", "note", "difference", "reason", "reasons", "problem", "problems"),
    *("label", "baseline_label"),
}
"""Fields that hold wording; the texts have it,"""
_PASSING = {
    *("at", "started_at", "finished_at", "seen_at", "ranked_at", "created_at", "earlier", "later"),
    *("oldest", "newest", "run", "runs", "supersedes", "fingerprint", "ragmetrics", "store"),
    *("settings", "flow_run", "unsilenced"),
}
"""and fields that hold what differs from run to run."""
_BLOCKS = {
    *("h1", "h2", "h3", "h4", "p", "li", "tr", "dt", "dd", "td", "th", "div", "section"),
    *("summary", "title"),
}
_CELLS = {"td", "dd"}
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( ?UTC|Z|\+00:00)?|\b\d\d:\d\d(:\d\d)?( UTC)?"
)
# A redacted text is [16 hex digits], which may happen to be a number.
_ID = re.compile(r"(?<=\[)[0-9a-f]{16}(?=\])|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{8,40}\b")
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_LASTED = re.compile(r"\b\d+(\.\d+)? ?(ms|s|min)\b( \d+ ?s\b)?")
_WORDED = re.compile(r',(rule|version)="[^"]*"')
_COUNTED = re.compile(r"/(cells|figures|messages)/")
_NUMBER = re.compile(r"(?<![\w.,-])[-+−]?\d[\d,]*(?:\.\d+)?%?(?![\w-])")


def pack(folder: Path, target: Path) -> None:
    """Pack the stores without their pages, and the log of the next night."""
    world.write_night(folder / "plain", (world.NEXT - world.FIRST).days)
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in _STORES:
            patterns = (*_PACKED, f"logs/dt={world.NEXT}/*")
            for path in sorted(one for each in patterns for one in (folder / name).glob(each)):
                if path.is_file() and "dashboard" not in path.parts:
                    entry = zipfile.ZipInfo(path.relative_to(folder).as_posix())
                    archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)


def unpacked(folder: Path, packed: Path = PACKED) -> Path:
    """Unpack the stores into a folder; return it."""
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(folder)
    return folder


def observe(folder: Path, slack: SlackServer, judge: JudgeServer) -> Seen:
    """Read the unpacked stores, run a night and a gate upon `plain`, and render all pages."""
    with ThreadPoolExecutor(2) as pool:
        seen = list(pool.map(lambda name: _observe_store(folder / name, slack, judge), _STORES))
    numbers = {name: found for name, (found, _) in zip(_STORES, seen, strict=True)}
    texts = {
        f"{name}/{path}": text
        for name, (_, pages) in zip(_STORES, seen, strict=True)
        for path, text in pages.items()
    }
    return json.loads(numbers_json(numbers)), texts


def _observe_store(folder: Path, slack: SlackServer, judge: JudgeServer) -> Seen:
    command = Commands(folder, {"SLACK_WEBHOOK_URL": slack.url, "OPENAI_API_KEY": "testing"})
    numbers: dict[str, Any] = {"stored": _stored(folder / "store")}
    numbers["alerts"] = command.json("alerts", "list", "--all")
    texts: dict[str, str] = {}
    if folder.name == "plain":
        days = world.day(5), world.day(7)
        numbers["comparison"] = command.json("compare", *days, "--by", "section", "--page")
        numbers["next"], texts = _go_on(command, slack)
    if folder.name == "judged":
        numbers["batches"] = command.json("batches", "store", "--base-url", judge.base_url)
    command.ragmetrics("dashboard", "store")
    site = folder / "store" / "dashboard"
    pages = {str(path.relative_to(site)): path for path in sorted(site.rglob("*.html"))}
    outlines = {name: Page(path.read_text(encoding="utf-8")) for name, path in pages.items()}
    numbers["pages"] = {name: page.numbers() for name, page in outlines.items()}
    numbers["monitoring"] = {
        _WORDED.sub("", neutral(line.rpartition(" ")[0])): float(line.rpartition(" ")[2])
        for path in sorted(site.glob("*.prom"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#") and "timestamp" not in line and "seconds" not in line
    }
    texts |= {f"{name}.txt": outlines[name].text() for name in _read_in_full(list(pages))}
    return _plain(numbers), texts


def _read_in_full(pages: Sequence[str]) -> list[str]:
    """The pages whose text is kept: of the long ones that each night has, those of the newest."""
    newest = max(name for name in pages if name[0] == "2").partition("/")[0]
    long = ("rows.html", "changes.html")
    return [name for name in pages if name.startswith(newest) or not name.endswith(long)]


def _go_on(command: Commands, slack: SlackServer) -> Seen:
    """The next night and a gate upon the store, and what they tell people."""
    command.night(world.NEXT)
    command.ragmetrics("gate", "--build", "damaged", "--against", "healthy", "--json")
    messages = list(slack.delivered)
    told = {f"messages/{n}.txt": neutral("\n".join(_said(m))) for n, m in enumerate(messages, 1)}
    files = Files(str(command.folder / "store"))
    found = {
        "night": json.loads(Runs(files).nights()[-1].model_dump_json(by_alias=True)),
        "gate": [json.loads(gate.model_dump_json(by_alias=True)) for gate in load_gates(files)][:1],
        "alerts": command.json("alerts", "list", "--all"),
        "messages": {name: count(text) for name, text in told.items()},
    }
    return found, told


def _stored(store: Path) -> dict[str, Any]:
    """The records of a store as the code reads them."""
    files = Files(str(store))
    known = load_history(files, newest=None)
    records: dict[str, Iterable[Any]] = {
        "nights": Runs(files).nights(),
        "gates": sorted(load_gates(files), key=lambda gate: gate.build),
        "calibrations": known.calibrations,
        "drifts": known.drifts,
    }
    return {
        name: [json.loads(one.model_dump_json(by_alias=True)) for one in of_kind]
        for name, of_kind in records.items()
    }


def _plain(value: Any) -> Any:
    """Without wording and what differs from run to run."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if key not in _WORDS | _PASSING}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return neutral(value) if isinstance(value, str) else value


def neutral(text: str) -> str:
    """A text without times, durations and the ids of runs."""
    for pattern, name in ((_TIME, "(time)"), (_ID, "(id)"), (_LASTED, "(duration)")):
        text = pattern.sub(name, text)
    return _DATE.sub(_known_date, text)


def _known_date(found: re.Match[str]) -> str:
    """The date of a night; any other is a day on which something was run."""
    return found[0] if found[0] <= str(world.NEXT) else "(day)"


def count(text: str) -> dict[str, int]:
    """How often each number stands in a text; dates are none."""
    found = _NUMBER.findall(_DATE.sub("(date)", text))
    return dict(sorted(Counter(one.replace("−", "-") for one in found).items()))


class Page(HTMLParser):
    """What a page shows: its text by blocks, its table cells, and its figures."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self._pieces: list[str] = []
        self._cells: list[str] = []
        self._figures: list[Any] = []
        self._inside: list[str] = []
        self._figure = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block, a cell or a figure."""
        self._inside.append(tag)
        self._figure = tag == "script" and "data-figure" in dict(attrs)
        self._separate(tag)

    def handle_endtag(self, tag: str) -> None:
        """End it."""
        if tag in self._inside:
            del self._inside[len(self._inside) - 1 - self._inside[::-1].index(tag) :]
        self._separate(tag)

    def handle_data(self, data: str) -> None:
        """Note what is shown, and figures."""
        if self._inside and self._inside[-1] in ("script", "style"):
            if self._figure:
                self._figures.append(json.loads(data))
            return
        self._pieces.append(data)
        if _CELLS.intersection(self._inside):
            self._cells.append(data)

    def text(self) -> str:
        """The visible text, one block a line."""
        lines = (" ".join(line.split()) for line in "".join(self._pieces).split("\0"))
        return neutral("\n".join(filter(None, lines))) + "\n"

    def numbers(self) -> dict[str, dict[str, int]]:
        """How often each number stands in the cells of tables, and in the data of figures."""
        data = [figure.get("data", figure) for figure in self._figures]
        return {
            "cells": count(neutral("".join(self._cells))),
            "figures": dict(sorted(Counter(_drawn(data)).items())),
        }

    def _separate(self, tag: str) -> None:
        if tag in _BLOCKS:
            self._pieces.append("\0")
            self._cells.append(" \n ")


def _drawn(figure: Any) -> Iterator[str]:
    """The numbers that a figure draws."""
    if isinstance(figure, dict):
        for key, value in figure.items():
            if key in ("x", "y", "z", "error_x", "error_y", "array", "arrayminus", "base"):
                yield from _drawn(value)
    elif isinstance(figure, list):
        for part in figure:
            yield from _drawn(part)
    elif isinstance(figure, int | float) and not isinstance(figure, bool):
        yield f"{figure:.6g}"


def _said(message: Any) -> Iterator[str]:
    """All texts of a Slack message."""
    if isinstance(message, dict):
        for key, value in message.items():
            if key == "text" and isinstance(value, str):
                yield value
            else:
                yield from _said(value)
    elif isinstance(message, list):
        for part in message:
            yield from _said(part)


def numbers_json(numbers: Mapping[str, Any]) -> str:
    """Numbers in canonical JSON: one record a line."""
    return _lines(numbers, 4) + "\n"


def _lines(value: Any, levels: int) -> str:
    if levels and isinstance(value, dict) and value:
        fields = (f"{json.dumps(key)}: {_lines(value[key], levels - 1)}" for key in sorted(value))
        return "{\n" + ",\n".join(fields) + "\n}"
    if levels and isinstance(value, list) and value:
        return "[\n" + ",\n".join(_lines(item, levels - 1) for item in value) + "\n]"
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def differences(numbers: Mapping[str, Any], texts: Mapping[str, str]) -> list[str]:
    """What is not as expected, one line each."""
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    return [*number_differences(expected, numbers), *text_differences(texts)]


def number_differences(expected: Any, found: Any, where: str = "") -> list[str]:
    """Expected numbers and states that are missing or others."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return [
            line
            for key, value in expected.items()
            for line in number_differences(value, found.get(key), f"{where}/{key}")
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs: Iterable[tuple[Any, Any]] = zip(expected, found, strict=True)
        return [
            line
            for place, (old, new) in enumerate(pairs)
            for line in number_differences(old, new, f"{where}/{place}")
        ]
    if _COUNTED.search(where) and isinstance(expected, int) and isinstance(found, int):
        return [] if found >= expected else [f"{where}: {expected} times, and now {found} times"]
    return [] if _same(expected, found) else [f"{where}: {expected!r:.200} became {found!r:.200}"]


def text_differences(texts: Mapping[str, str]) -> list[str]:
    """Texts that are not as they were written down."""
    known = {path.relative_to(TEXTS).as_posix() for path in TEXTS.rglob("*.txt")}
    found = [
        f"{name}: reads differently"
        for name, text in texts.items()
        if name not in known or (TEXTS / name).read_text(encoding="utf-8") != text
    ]
    return [*found, *(f"{name}: is not there any more" for name in sorted(known - {*texts}))]


def _same(expected: Any, found: Any) -> bool:
    if isinstance(expected, float) and isinstance(found, int | float):
        return math.isclose(expected, found, rel_tol=1e-9, abs_tol=1e-12)
    return bool(expected == found)
