"""Writes the log of a build that has none: asks the retriever the golden questions."""

from __future__ import annotations

from ragmetrics.comparison.gate.staging import check_dataset
from ragmetrics.comparison.replay.run import Progress, run_replay
from ragmetrics.config import BUILD, Settings
from ragmetrics.errors import InputError
from ragmetrics.logs import find_logs
from ragmetrics.model import IndexBuild, ReplayReport
from ragmetrics.storage import Files


def replay_missing(
    settings: Settings, build: IndexBuild, progress: Progress | None = None
) -> ReplayReport | None:
    """Ask a build the golden questions, and write its log.

    None where the build has a log, or the settings name no retriever. `progress` is called for
    each question.

    Raises InputError for a build of another data set, and for a place outside the folder of
    `gate: logs:`: an event must not decide where the worker writes. Raises what `run_replay`
    raises: InputError, and a transient ReplayIncomplete where too many questions have no answer.
    """
    if settings.retriever is None:
        return None
    check_dataset(settings, build)
    place = (build.logs or settings.gate.logs).replace(BUILD, build.build)
    _, infos = find_logs(place, settings.storage_options)
    if infos:
        return None
    if build.logs:
        check_below(settings, place)
    return run_replay(settings, build.build, build.logs, progress)


def check_below(settings: Settings, place: str) -> None:
    """Raise InputError where the place is not below the folder of `gate: logs:`."""
    head = settings.gate.logs.partition(BUILD)[0]
    folder = head[: head.rfind("/") + 1] or "./"
    base, there = (Files(one, settings.storage_options) for one in (folder, place))
    if base.local and there.local:  # links and `..` followed
        below = there.local.resolve().is_relative_to(base.local.resolve())
    else:
        below = "://" in folder and place.startswith(folder) and not _leads_elsewhere(place)
    if not below:
        raise InputError(
            f"no log at {place}, and a gate writes logs below {folder} only, the folder of "
            "`gate: logs:`: name a place there, or none, or write it with `ragmetrics replay --out`"
        )


def _leads_elsewhere(place: str) -> bool:
    """Whether an address may lead outside the folder that it begins with."""
    return "::" in place or ".." in place.split("/")
