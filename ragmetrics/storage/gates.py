"""Verdicts on index builds, and the comparison of each build with the serving one.

gates/BUILD.json
gates/compared/BUILD.json       the comparison, as `ragmetrics compare` computes it
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import date
from functools import partial

from ragmetrics.model import Comparison, Gate, is_name
from ragmetrics.storage.clearing import remove_file
from ragmetrics.storage.files import Files
from ragmetrics.storage.json_records import find_record, save_record
from ragmetrics.storage.newest_first import newest_first
from ragmetrics.text import slug

GATES = "gates"


def load_gate(files: Files, build: str) -> Gate | None:
    """The verdict on a build; None if it is missing or cannot be read."""
    return _find(files, gate_path(build))


def load_gates(files: Files) -> Iterator[Gate]:
    """The verdicts on all builds, newest first. Each is read when it is needed.

    A verdict that cannot be read is logged and left out; its build can be gated again.
    """
    infos = files.glob(f"{GATES}/*.json")
    return newest_first(infos, partial(_find, files), lambda gate: gate.finished_at)


def find_serving(files: Files, dataset: str, day: date) -> list[str]:
    """The build that was promoted last, on a day or before it, and the build that served before.

    Empty if none was promoted. Then the rows of the nights show which build serves.
    """
    for gate in load_gates(files):
        promoted = (gate.verdict, gate.dataset) == ("promote", dataset)
        if promoted and gate.finished_at.date() <= day:
            return [gate.build, *([gate.serving] if gate.serving else [])]
    return []


def save_gate(files: Files, gate: Gate) -> None:
    """Write the verdict on a build. It replaces an earlier verdict."""
    save_record(files, gate_path(gate.build), gate)


def save_compared(files: Files, build: str, found: Comparison | None) -> None:
    """Write the comparison of a build with the serving one. None removes an earlier comparison."""
    if found is None:
        remove_file(files, compared_path(build))
    else:
        save_record(files, compared_path(build), found)


def load_compared(files: Files, build: str) -> Comparison | None:
    """The comparison of a build; None if there is none, or an older version wrote it."""
    path = compared_path(build)
    return find_record(files, path, Comparison, "not a comparison, it is left out")


def compared_path(build: str) -> str:
    """The path of the comparison of a build."""
    return f"{GATES}/compared/{build}.json"


def gate_path(build: str) -> str:
    """The path of the verdict on a build."""
    return f"{GATES}/{build}.json"


def _find(files: Files, path: str) -> Gate | None:
    return find_record(files, path, Gate, "not a verdict, it is left out")


BUILD_PAGES = "builds"


def build_path(build: str) -> str:
    """The path of a build's page on the site. An unsafe name is replaced by slug and digest."""
    name = build
    if not is_name(build):
        digest = hashlib.blake2b(build.encode("utf-8", "surrogatepass"), digest_size=6)
        name = f"{slug(build)[:60]}-{digest.hexdigest()}"
    return f"{BUILD_PAGES}/{name}.html"
