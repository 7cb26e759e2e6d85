"""A build that has no log yet gets one: the golden questions, asked of it by the retriever."""

from __future__ import annotations

from ragmetrics.gate_settings import BUILD
from ragmetrics.gates.records import IndexBuild
from ragmetrics.gates.staging import check_dataset
from ragmetrics.replay import Replayed, replay
from ragmetrics.replay.run import Progress
from ragmetrics.settings import Settings
from ragmetrics.store.logs import find_logs


def replay_missing(
    settings: Settings, build: IndexBuild, progress: Progress | None = None
) -> Replayed | None:
    """Ask the golden questions of a build, and write its log; None where it has one, or where the
    settings name no retriever. `progress` hears of each question.

    Raises InputError for a build of another data set, and what `replay` raises: InputError, and a
    transient ReplayShort where too many questions have no answer.
    """
    if settings.retriever is None:
        return None
    check_dataset(settings, build)
    place = (build.logs or settings.gate.logs).replace(BUILD, build.build)
    _, infos = find_logs(place, settings.storage_options)
    return None if infos else replay(settings, build.build, build.logs, progress)
