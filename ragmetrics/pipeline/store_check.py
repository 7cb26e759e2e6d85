"""Which files of a store are damaged: each is read as the record that its path says it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nlargest
from json import JSONDecodeError, loads

from pydantic import ValidationError

from ragmetrics.delivery import RECORDS
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
from ragmetrics.scoring import RUN_FILES
from ragmetrics.storage import FileInfo, Files, StoredPart

_CHECKED_NIGHTS = 14
"""Newest nights whose own files are checked; of older nights no file is read by a night."""
_MOST_OF_A_KIND = 100
"""Newest files of a kind that are opened: 5,000 footers of a bucket would take minutes."""
_RECORDS: tuple[tuple[str, type[Record]], ...] = (
    (r"runs/.*\.json", Manifest),
    *((rf"(?:gates/)?rows/.*/{name}\.json", record) for name, record in RUN_FILES.items()),
    *RECORDS,
    (r"alerts/silences/.*\.json", Silence),
    (r"calibrations/set=.*\.json", Calibration),
    (r"calibrations/drift/.*\.json", Drift),
    (r"learned/.*\.json", LearnedModel),
    (r"gates/[^/]+\.json", Gate),
    (r"gates/compared/.*\.json", Comparison),
    (r"gates/undecided/.*\.json", FailedGate),
    (r"topics/.*\.json", TopicModel),
    (r"whatif/.*\.json", WhatIf),
)
_JSON = re.compile(r"(?:history|batches)/.*\.json")
_PARQUET = re.compile(r"(?:gates/)?(?:rows|scores|judgements|calibrations)/.*\.parquet")
_EMPTY_IS_REMOVED = re.compile(
    r"(?:alerts|write-back)/outbox/|alerts/delivered/|alerts/silences/|gates/(?!rows/|scores/)"
)
"""Files that count as removed when they are empty, as `Files.discard` may leave them."""


@dataclass(frozen=True)
class StoreCheck:
    """The damaged files among those that were read, each with the reason."""

    damaged: tuple[str, ...]
    read: int
    of: int
    """Number of files of the store that can be checked."""


def check_store(files: Files) -> StoreCheck:
    """Read the newest files of each kind, of the newest nights. Nothing is changed.

    Raises StoreError where the store cannot be listed.
    """
    listed = [info for info in files.below() if _kind(info.path)]
    chosen = _newest(listed)
    problems = files.side_by_side(partial(problem_of, files), chosen)
    damaged = (*_folders(files), *filter(None, problems))
    return StoreCheck(damaged, len(chosen), len(listed))


def _newest(listed: Sequence[FileInfo]) -> list[FileInfo]:
    """The newest files of each kind, without those of older nights, by path."""
    nights = {key.night for info in listed if (key := run_key(info.path)) and not key.gate}
    newest = sorted(nights)[-_CHECKED_NIGHTS:]
    kinds: dict[str, list[FileInfo]] = {}
    for info in listed:
        if (key := run_key(info.path)) is None or key.gate or key.night in newest:
            kinds.setdefault(_kind(info.path), []).append(info)
    chosen = [
        info
        for kind in kinds.values()
        for info in nlargest(_MOST_OF_A_KIND, kind, key=lambda one: (one.modified or 0.0, one.path))
    ]
    return sorted(chosen, key=lambda info: info.path)


def _kind(path: str) -> str:
    """The pattern that a path matches, for a table its folder; empty if it cannot be checked."""
    if _PARQUET.fullmatch(path):
        return path.partition("/")[0]
    patterns = (*(pattern for pattern, _ in _RECORDS), _JSON.pattern)
    return next((one for one in patterns if re.fullmatch(one, path)), "")


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
        StoredPart(files, path).notes()
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
