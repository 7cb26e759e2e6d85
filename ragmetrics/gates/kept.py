"""The verdicts in the store: one file per build, `gates/BUILD.json`."""

from __future__ import annotations

import logging

from pydantic import ValidationError

from ragmetrics.gates.records import Gate
from ragmetrics.rows import explain
from ragmetrics.store.files import Files

FOLDER = "gates"
log = logging.getLogger(__name__)


def load_gate(files: Files, build: str) -> Gate | None:
    """The verdict on a build; None where there is none, or none that can be read."""
    path = _path(build)
    data = files.find(path)
    return None if data is None else _parse(files, path, data)


def load_gates(files: Files) -> list[Gate]:
    """The verdicts on all builds, newest first.

    One that cannot be read is as good as none, and logged: its build can be gated again.
    """
    paths = [info.path for info in files.glob(f"{FOLDER}/*.json")]
    # One may be gone since the listing.
    found = ((path, files.find(path)) for path in paths)
    gates = [_parse(files, path, data) for path, data in found if data is not None]
    readable = [gate for gate in gates if gate]
    return sorted(readable, key=lambda gate: (gate.finished_at, gate.build), reverse=True)


def save_gate(files: Files, gate: Gate) -> None:
    """Write the verdict on a build, in place of an earlier one."""
    files.write(_path(gate.build), gate.model_dump_json(indent=1).encode())


def _path(build: str) -> str:
    return f"{FOLDER}/{build}.json"


def _parse(files: Files, path: str, data: bytes) -> Gate | None:
    try:
        return Gate.model_validate_json(data)
    except ValidationError as error:
        log.error("%s is no verdict, it is left out: %s", files.uri(path), explain(error))
        return None
