"""The logs of index builds: finds a build's log, and checks whether two logs are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragmetrics.config import BUILD, Settings
from ragmetrics.errors import InputError, StoreError
from ragmetrics.logs import LogSet, NightInputs, find_logs, golden_set, log_of
from ragmetrics.model import LogRow
from ragmetrics.storage import FileInfo, Files, load_gate, open_store

_CHUNK = 1 << 20


@dataclass(frozen=True)
class BuildLog:
    """The result of looking for a build's log at a place."""

    place: str
    inputs: NightInputs | None
    problem: str = ""


def find_build_log(settings: Settings, build: str) -> BuildLog:
    """The log of a build at the place of the settings, or at the place that its gate used.

    Where there is none, the result has the problem of the first place. Raises transient
    StoreErrors, and errors of the golden set.
    """
    gated, found = load_gate(open_store(settings), build), []
    for logs in dict.fromkeys([settings.gate.logs, *([gated.logs] if gated else [])]):
        found.append(find_log(settings, logs, build))
        if found[-1].inputs:
            return found[-1]
    return found[0]


def find_log(settings: Settings, logs: str, build: str) -> BuildLog:
    """Look for a build's log. Raises transient StoreErrors, and errors of the golden set."""
    place = logs.replace(BUILD, build)
    try:
        files, infos = find_logs(place, settings.storage_options)
    except (InputError, StoreError) as error:
        if error.transient:
            raise
        return BuildLog(place, None, str(error))
    if not infos:
        return BuildLog(place, None, f"no log at {place}")
    found = (_read_as(settings, files, infos),)
    return BuildLog(place, NightInputs(found, golden_set(settings), golden_first=True))


def _read_as(settings: Settings, files: Files, infos: tuple[FileInfo, ...]) -> LogSet:
    """A log in our own layout is read as such, whatever the layout of the nights' logs: a replay
    of the golden questions writes our layout.
    """
    ours = log_of(settings, files, infos)
    mapped = settings.preset or {"user_input", "retrieved_contexts"} & set(settings.columns)
    if mapped and isinstance(next(iter(ours.read()), None), LogRow):
        return ours
    return replace(ours, columns=settings.columns, preset=settings.preset)


def content_of(found: BuildLog) -> str:
    """Digest of the bytes of a log's files, independent of place and time.

    Empty where there is no readable log; staging reports that. Raises transient StoreErrors.
    """
    digest = hashlib.blake2b(digest_size=16)
    try:
        for logs in found.inputs.logs if found.inputs else ():
            for info in sorted(logs.infos, key=lambda one: one.path):
                digest.update(f"{info.size} ".encode())
                if info.refused:
                    continue
                with logs.files.open(info.path) as file:
                    while chunk := file.read(_CHUNK):
                        digest.update(chunk)
    except StoreError as error:
        if error.transient:
            raise
        return ""
    return digest.hexdigest() if found.inputs else ""


def same_log(settings: Settings, ours: BuildLog, theirs: str) -> list[str]:
    """The problem where both builds have the same log: such a comparison would always pass."""
    if ours.inputs is None:
        return []
    (mine,) = ours.inputs.logs
    if _whole(mine.files, mine.infos).isdisjoint(
        _whole(*find_logs(theirs, settings.storage_options))
    ):
        return []
    return [f"both builds have their log at {ours.place}: each needs its own"]


def _whole(files: Files, infos: Sequence[FileInfo]) -> set[str]:
    """Absolute names of files."""
    if files.local:
        return {str((files.local / info.path).resolve()) for info in infos}
    return {files.uri(info.path).replace("s3a://", "s3://", 1) for info in infos}
