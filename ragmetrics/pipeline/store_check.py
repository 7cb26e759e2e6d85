"""Which files of a store are damaged: each is read as the record that its path says it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from json import JSONDecodeError, loads

from pydantic import ValidationError

from ragmetrics.delivery import AlertStore, Threads, Undelivered, WaitingNight
from ragmetrics.errors import StoreError
from ragmetrics.pipeline.store_references import run_key
from ragmetrics.records import (
    Calibration,
    Comparison,
    Drift,
    FailedGate,
    Gate,
    LearnedModel,
    Manifest,
    Record,
    Silence,
    TopicModel,
    WhatIf,
    explain_validation_error,
)
from ragmetrics.scoring import BudgetPlan, Reuse, SamplePlan, Staged
from ragmetrics.storage import FileInfo, Files, read_notes, side_by_side

_CHECKED_NIGHTS = 14
"""Newest nights whose own files are checked; of older nights no file is read by a night."""
_RECORDS: tuple[tuple[str, type[Record]], ...] = (
    (r"runs/.*\.json", Manifest),
    (r"(?:gates/)?rows/.*/staged\.json", Staged),
    (r"(?:gates/)?rows/.*/reuse\.json", Reuse),
    (r"(?:gates/)?rows/.*/budget\.json", BudgetPlan),
    (r"(?:gates/)?rows/.*/sample\.json", SamplePlan),
    (r"alerts/state\.json", AlertStore),
    (r"alerts/threads\.json", Threads),
    (r"alerts/outbox/.*\.json", Undelivered),
    (r"alerts/silences/.*\.json", Silence),
    (r"calibrations/set=.*\.json", Calibration),
    (r"calibrations/drift/.*\.json", Drift),
    (r"learned/.*\.json", LearnedModel),
    (r"write-back/outbox/.*\.json", WaitingNight),
    (r"gates/[^/]+\.json", Gate),
    (r"gates/compared/.*\.json", Comparison),
    (r"gates/undecided/.*\.json", FailedGate),
    (r"topics/.*\.json", TopicModel),
    (r"whatif/.*\.json", WhatIf),
)
_JSON = re.compile(r"(?:history|batches)/.*\.json")
_PARQUET = re.compile(r"(?:gates/)?(?:rows|scores|judgements|calibrations)/.*\.parquet")
_EMPTY_IS_REMOVED = re.compile(
    r"(?:alerts|write-back)/outbox/|alerts/silences/|gates/(?!rows/|scores/)"
)


def damaged_files(files: Files) -> list[str]:
    """The damaged files of a store, each with the reason. Nothing is changed.

    Raises StoreError where the store cannot be listed.
    """
    listed = files.below()
    nights = {key.night for info in listed if (key := run_key(info.path)) and not key.gate}
    newest = sorted(nights)[-_CHECKED_NIGHTS:]
    checked = [
        info
        for info in listed
        if (key := run_key(info.path)) is None or key.gate or key.night in newest
    ]
    found = side_by_side(files, partial(problem_of, files), checked)
    return [*_folders(files), *(text for text in found if text)]


def _folders(files: Files) -> Iterator[str]:
    """Folders that stand where a file should be; a listing of files does not have them."""
    for path in sorted(files.local.rglob("*.*")) if files.local else ():
        name = path.relative_to(files.local or "").as_posix()
        if path.is_dir() and path.suffix in (".json", ".parquet") and not name.startswith("dash"):
            yield f"{name}: a folder, and no file"


def problem_of(files: Files, info: FileInfo) -> str:
    """What is wrong with a file; empty where nothing is, or where it is no file of a store."""
    if not info.size and _EMPTY_IS_REMOVED.match(info.path):
        return ""
    try:
        for reason in _reasons(files, info.path):
            return f"{info.path}: {reason}"
    except StoreError as error:
        return f"{info.path}: {error}"
    return ""


def _reasons(files: Files, path: str) -> Iterator[str]:
    if _PARQUET.fullmatch(path):
        read_notes(files, path)
        return
    kind = next((record for pattern, record in _RECORDS if re.fullmatch(pattern, path)), None)
    if kind is None and not _JSON.fullmatch(path):
        return
    data = files.read(path)
    try:
        if kind:
            kind.model_validate_json(data)
        elif not isinstance(loads(data), dict):
            yield "not an object"
    except ValidationError as error:
        yield f"not a {kind.__name__ if kind else 'record'} ({explain_validation_error(error)})"
    except (JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        yield f"not JSON ({error})"


def sentence(damaged: Sequence[str], most: int = 5) -> str:
    """The damaged files for people: the first ones, and the number of the others."""
    more = len(damaged) - most
    return "; ".join([*damaged[:most], *([f"and {more:,} more"] if more > 0 else [])])
