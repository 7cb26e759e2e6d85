"""The verdicts in the store, one file per build, and beside each how the two builds differ.

gates/BUILD.json
gates/compared/BUILD.json       as `ragmetrics compare` tells it: where, and by which questions
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from datetime import date
from functools import partial

from pydantic import ValidationError

from ragmetrics.model import Comparison, Gate, explain_validation_error, is_name
from ragmetrics.storage.clearing import remove_file
from ragmetrics.storage.files import Files
from ragmetrics.storage.newest_first import newest_first
from ragmetrics.text import slug

GATES = "gates"
log = logging.getLogger(__name__)


def load_gate(files: Files, build: str) -> Gate | None:
    """The verdict on a build; None where there is none, or none that can be read."""
    return _find(files, gate_path(build))


def load_gates(files: Files) -> Iterator[Gate]:
    """The verdicts on all builds, newest first, each read when its turn comes.

    One that cannot be read is as good as none, and logged: its build can be gated again.
    """
    infos = files.glob(f"{GATES}/*.json")
    return newest_first(infos, partial(_find, files), lambda gate: gate.finished_at)


def find_serving(files: Files, dataset: str, day: date) -> list[str]:
    """The build that was promoted last, on a day or before it, and the one that served before it.

    Nothing where none was promoted: then the rows of the nights say which build serves.
    """
    for gate in load_gates(files):
        promoted = (gate.verdict, gate.dataset) == ("promote", dataset)
        if promoted and gate.finished_at.date() <= day:
            return [gate.build, *([gate.serving] if gate.serving else [])]
    return []


def save_gate(files: Files, gate: Gate) -> None:
    """Write the verdict on a build, in place of an earlier one."""
    files.write(gate_path(gate.build), gate.model_dump_json(indent=1).encode())


def save_compared(files: Files, build: str, found: Comparison | None) -> None:
    """Write how a build differs from the one that it was held against; nothing of one that could
    not be compared.
    """
    if found is None:
        remove_file(files, compared_path(build))
    else:
        files.write(compared_path(build), found.model_dump_json(indent=1).encode())


def load_compared(files: Files, build: str) -> Comparison | None:
    """How a build differs; None where it was not compared, or by a version that told less."""
    data = files.find(compared_path(build))
    try:
        return Comparison.model_validate_json(data) if data else None
    except ValidationError as error:
        log.error(
            "%s is no comparison, it is left out: %s",
            files.uri(compared_path(build)),
            explain_validation_error(error),
        )
        return None


def compared_path(build: str) -> str:
    """Where it stands in the store."""
    return f"{GATES}/compared/{build}.json"


def gate_path(build: str) -> str:
    """Where the verdict on a build stands in the store."""
    return f"{GATES}/{build}.json"


def _find(files: Files, path: str) -> Gate | None:
    data = files.find(path)
    if data is None:  # one may be gone since the listing
        return None
    try:
        return Gate.model_validate_json(data)
    except ValidationError as error:
        log.error(
            "%s is no verdict, it is left out: %s", files.uri(path), explain_validation_error(error)
        )
        return None


BUILD_PAGES = "builds"


def build_path(build: str) -> str:
    """Where the page of a build stands on the site; a digest stands for a name that is none."""
    name = build
    if not is_name(build):
        digest = hashlib.blake2b(build.encode("utf-8", "surrogatepass"), digest_size=6)
        name = f"{slug(build)[:60]}-{digest.hexdigest()}"
    return f"{BUILD_PAGES}/{name}.html"
