"""The fan-out of a run: one task per metric family and shard, on the runner of the settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from prefect.futures import PrefectFuture, wait

from ragmetrics.errors import RagmetricsError
from ragmetrics.settings import Settings
from ragmetrics.store.parts import RunRef
from ragmetrics.workers import Part
from tasks.steps import score


def score_all(
    settings: Settings, ref: RunRef, parts: Sequence[Part], kept: str | None = None
) -> list[RagmetricsError]:
    """Score the parts of a run; return why some could not be scored.

    `kept` is the store that has the judgements; None: that of the settings. What is no error of
    ours is a bug, and raised.
    """
    futures = [
        score.with_options(
            task_run_name=f"{' + '.join(family)} · shard {shard + 1}/{ref.shards}"
        ).submit(settings, ref, family, shard, kept)
        for family, shard in parts
    ]
    wait(futures)
    return list(_errors(futures))


def _errors(futures: Sequence[PrefectFuture[Any]]) -> Iterator[RagmetricsError]:
    for future in futures:
        result = future.result(raise_on_failure=False)
        if isinstance(result, RagmetricsError):
            yield result
        elif isinstance(result, BaseException):
            raise result
