"""The logs of index builds: finds a build's log, or writes one by a replay of the golden questions.

It also compares the logs of two builds: each build needs its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics.comparison.gate.store import load_gate
from ragmetrics.comparison.replay.run import Progress, run_replay
from ragmetrics.config import Settings
from ragmetrics.errors import InputError, StoreError
from ragmetrics.logs import LogSet, NightInputs, find_logs, golden_set, in_layout, log_of
from ragmetrics.records import IndexBuild, LogRow, ReplayReport
from ragmetrics.storage import FileInfo, Files, open_store

_CHUNK = 1 << 20


@dataclass(frozen=True)
class BuildLog:
    """The result of looking for a build's log at a place."""

    place: str
    inputs: NightInputs | None
    problem: str = ""


def find_build_log(settings: Settings, build: str, *, announced: bool = False) -> BuildLog:
    """The log of a build at the place of the settings, or at the place that its gate used.

    `announced`: for an event, which is not led to a place of an earlier gate outside the folder of
    `gate: logs:`. Where there is no log, the result has the problem of the first place. Raises
    transient StoreErrors, and errors of the golden set.
    """
    gated, found = load_gate(open_store(settings), build), []
    earlier = (
        [gated.logs] if gated and not (announced and _is_elsewhere(settings, gated.logs)) else []
    )
    for logs in dict.fromkeys([settings.gate.logs, *earlier]):
        found.append(find_log(settings, logs, build))
        if found[-1].inputs:
            return found[-1]
    return found[0]


def find_log(settings: Settings, logs: str, build: str) -> BuildLog:
    """Look for a build's log. Raises transient StoreErrors, and errors of the golden set."""
    place = settings.gate.place_of(build, logs)
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
    """The log in its own layout. A replay writes our layout, so a log in our layout is read as such
    even where the settings name another one for the nights' logs.
    """
    ours = log_of(settings, files, infos)
    mapped = settings.preset or {"user_input", "retrieved_contexts"} & set(settings.columns)
    if mapped and isinstance(ours.first_row(), LogRow):
        return ours
    return in_layout(settings, ours)


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
    return [f"{ours.place} is the log of both sides: each needs its own"]


def _whole(files: Files, infos: Sequence[FileInfo]) -> set[str]:
    """Absolute names of files."""
    if files.local:
        return {str((files.local / info.path).resolve()) for info in infos}
    return {files.uri(info.path).replace("s3a://", "s3://", 1) for info in infos}


def check_dataset(settings: Settings, build: IndexBuild) -> None:
    """Raise InputError for a build of another data set, which has other questions."""
    if build.dataset != settings.dataset:
        raise InputError(
            f"build {build.build} is of the data set {build.dataset}, and the settings are of "
            f"{settings.dataset}"
        )


def check_announced(settings: Settings, build: IndexBuild) -> None:
    """Raise InputError where an event names a log outside the folder of `gate: logs:`: questions
    and answers of a log are published, and whoever may post events is not the worker's operator.
    """
    if not build.logs:
        return
    place = settings.gate.place_of(build.build, build.logs)
    if _is_elsewhere(settings, place):
        raise InputError(
            f"index build {build.build}: logs: {place} is not below {settings.gate.folder}, the "
            "folder of `gate: logs:` in the settings: the log that an event names is read from "
            "there only (by hand: ragmetrics gate --logs)"
        )


def replay_missing(
    settings: Settings,
    build: IndexBuild,
    progress: Progress | None = None,
    *,
    announced: bool = False,
) -> ReplayReport | None:
    """Ask a build the golden questions, and write its log.

    None where the build has a log, or the settings name no retriever. `progress` is called for
    each question. `announced`: by an event, as in `check_announced`.

    Raises InputError for a build of another data set, and for a place outside the folder of
    `gate: logs:`: a gate must not decide where the worker writes. Raises what `run_replay`
    raises: InputError, and a transient ReplayIncomplete where too many questions have no answer.
    """
    if settings.retriever is None:
        return None
    check_dataset(settings, build)
    if announced:
        check_announced(settings, build)
    place = settings.gate.place_of(build.build, build.logs)
    _, infos = find_logs(place, settings.storage_options)
    if infos:
        return None
    if build.logs:
        check_below(settings, place)
    return run_replay(settings, build.build, build.logs, progress)


def check_below(settings: Settings, place: str) -> None:
    """Raise InputError where the place is not below the folder of `gate: logs:`."""
    if _is_elsewhere(settings, place):
        raise InputError(
            f"no log at {place}, and a gate writes logs below {settings.gate.folder} only, the "
            "folder of `gate: logs:`: name a place there, or none, or write it with `ragmetrics "
            "replay --out`"
        )


def _is_elsewhere(settings: Settings, place: str) -> bool:
    options = settings.storage_options
    return not Files(place, options).lie_below(Files(settings.gate.folder, options))
