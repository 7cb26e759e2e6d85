"""The fan-out of a run: one task per metric family and shard, on the runner of the settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from prefect import get_run_logger
from prefect.client.schemas.objects import State, StateDetails
from prefect.futures import PrefectFuture, as_completed
from prefect.states import Completed

from flows.progress import Label, Watch, watching
from flows.runners import RunnerFailed, lost, open_runner
from ragmetrics.config import Settings
from ragmetrics.errors import RagmetricsError, StoreError, WorkerDied
from ragmetrics.scoring import Part
from ragmetrics.storage import RunRef, open_store
from tasks.nightly import score
from tasks.run_page import newest_key

ROUNDS = 2
"""How often a part is submitted. A part that a cluster gave up has killed several workers."""


@dataclass(frozen=True)
class ScoredParts:
    """What became of the parts of a run."""

    errors: list[RagmetricsError]
    """Of parts that could not be scored."""
    task_runs: list[UUID]

    @property
    def ended(self) -> list[State[Any]]:
        """The task runs as states for `wait_for`: what comes next stands after them in Prefect's
        graph, and goes on if some have failed. Results are not kept.
        """
        details = [StateDetails(task_run_id=run) for run in self.task_runs]
        return [Completed(data=True, state_details=detail) for detail in details]


def score_all(
    settings: Settings,
    ref: RunRef,
    parts: Sequence[Part],
    label: Label | None = None,
    *,
    kept: str | None = None,
    until: datetime | None = None,
) -> ScoredParts:
    """Score the parts of a run; return the task runs, and the errors of parts without scores.

    `label` names the run for people; None: its night. `kept` is the store of the replies; None:
    that of the settings. After `until` no judge gets a request, in any process. Parts whose process
    died are scored again by another process. Any other exception is a bug, and raised.
    Raises SettingsError or RunnerFailed if no runner can be started.
    """
    label = label or _label(settings, ref)
    with watching(label, parts) as watch:
        work = _Work(settings, ref, label.name, kept, until)
        errors, died = work.round(parts, watch)
        for _ in range(1, ROUNDS):
            if not died:
                break
            get_run_logger().warning("%d parts lost their process and start again", len(died))
            try:
                more, died = work.round([part for part, _ in died], watch)
            except RunnerFailed as failed:
                died = [(part, WorkerDied(f"{error}; {failed}")) for part, error in died]
                break
            errors += more
        for part, error in died:
            watch.ended(part, scored=False)
            errors.append(error)
    return ScoredParts(errors, work.task_runs)


def _label(settings: Settings, ref: RunRef) -> Label:
    """The label of a night. The progress of an older night stands for no newer one."""
    try:
        keyed = newest_key("", open_store(settings), ref.date) is not None
    except StoreError:
        keyed = False
    return Label(settings.dataset, str(ref.date), keyed=keyed)


@dataclass(frozen=True)
class _Work:
    """The values that all parts of a run share."""

    settings: Settings
    ref: RunRef
    name: str
    kept: str | None
    until: datetime | None
    task_runs: list[UUID] = field(default_factory=list)

    def round(
        self, parts: Sequence[Part], watch: Watch
    ) -> tuple[list[RagmetricsError], list[tuple[Part, WorkerDied]]]:
        """Score parts; return errors, and the parts whose process died."""
        errors: list[RagmetricsError] = []
        died: list[tuple[Part, WorkerDied]] = []
        bug: BaseException | None = None
        for part, error in self._played(parts):
            if isinstance(error, WorkerDied):
                died.append((part, error))
                continue
            if isinstance(error, RagmetricsError):
                errors.append(error)
            else:
                bug = bug or error
            watch.ended(part, scored=error is None)
        if bug:  # the other parts are in the store by now
            raise bug
        return errors, died

    def _played(self, parts: Sequence[Part]) -> Iterator[tuple[Part, BaseException | None]]:
        """Each part as it ends, with its error."""
        with open_runner(self.settings, len(parts)) as runner:
            futures: dict[PrefectFuture[Any], Part] = {}
            for part in parts:
                family, shard = part
                task = score.with_options(task_run_name=self._name(part))
                what = {
                    "settings": self.settings,
                    "ref": self.ref,
                    "family": family,
                    "shard": shard,
                    "kept": self.kept,
                    "until": self.until,
                }
                future = runner.submit(task, what)
                futures[future] = part
                self.task_runs.append(future.task_run_id)
            for future in as_completed(list(futures)):
                yield futures[future], self._error(future, futures[future])

    def _name(self, part: Part) -> str:
        return f"{' + '.join(part[0])} · shard {part[1] + 1}/{self.ref.shards} · {self.name}"

    def _error(self, future: PrefectFuture[Any], part: Part) -> BaseException | None:
        try:
            result = future.result(raise_on_failure=False)
        except Exception as error:
            if lost(error):
                return WorkerDied(
                    f"{self._name(part)}: the process that scored it died, perhaps "
                    f"for lack of memory: give workers more of it, or set more `shards:` ({error})"
                )
            raise
        return result if isinstance(result, BaseException) else None
