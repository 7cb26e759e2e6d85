"""The four steps of a night for a scheduler that runs each of them in a process of its own.

    stage -> score (each part) -> publish -> alert

The functions of `nightly.py` do the work, as in `run_night`. Here they get references, which a
scheduler stores between the steps, and read from the store what the references mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

from pydantic import AwareDatetime, ValidationError

from ragmetrics.config import Settings, check_not_future
from ragmetrics.errors import InputError, RagmetricsError, StoreError
from ragmetrics.pipeline.nightly import Night, NightResult, finish_night
from ragmetrics.records import Manifest, Record, deadline_at, explain_validation_error, use_deadline
from ragmetrics.scoring import Staged, list_parts, score_part
from ragmetrics.storage import RunRef, Runs, open_store

Reference = TypeVar("Reference", bound=Record)


class NightRun(Record):
    """A reference to a night under way, for the next step: small, and without texts of the log."""

    ref: RunRef
    begun: AwareDatetime
    """When the night began. Its deadline counts from here."""
    problems: tuple[str, ...] = ()
    """Why the labelled set of `alerts: drift_set` was not judged."""
    unwritten: tuple[str, ...] = ()
    """Files that could not be written and that the run does not need."""

    @property
    def as_json(self) -> dict[str, Any]:
        """The reference as JSON values. Each step takes it in this form too."""
        return self.model_dump(mode="json")


class NightPart(Record):
    """A part of a night's scoring: metrics that share requests, over one shard of the rows."""

    metrics: tuple[str, ...]
    shard: int

    @property
    def as_json(self) -> dict[str, Any]:
        """The part as JSON values. `NightSteps.score` takes it in this form too."""
        return self.model_dump(mode="json")


@dataclass(frozen=True)
class NightSteps:
    """The four steps of a night, for the tasks of a scheduler. `run_night` runs all of them.

        steps = NightSteps(load_settings("ragmetrics.yaml"))
        run = steps.stage(date(2026, 11, 19))
        problems = [steps.score(run, part) for part in steps.parts(run)]
        steps.publish(run, problems)
        steps.alert(run)

    Each step may run in another process, on another machine: it needs the same settings and the
    same store. `NightRun` and `NightPart` pass between them, as they are or as JSON (`as_json`).
    Parts may be scored at the same time. A repeated step does no finished work again: no request
    is paid twice, no number changes and no message is sent twice.
    Steps raise RagmetricsError; only an error with `transient` is worth a retry.
    """

    settings: Settings

    def stage(self, day: date) -> NightRun:
        """Copy the night's logs into the store as a run, and judge the labelled set.

        The deadline of the settings counts from here. If the night was staged before, its run is
        found again; a night that was published without all verdicts gets a new attempt.
        """
        begun = datetime.now(UTC)
        check_not_future(day, self.settings.time_zone)
        with use_deadline(deadline_at(begun + self.settings.deadline)):
            staged = Night(self.settings).stage(day, begun)
        problems = Night(self.settings).judge_drift_labels(begun + self.settings.deadline)
        return NightRun(
            ref=staged.ref, begun=begun, problems=tuple(problems), unwritten=staged.problems
        )

    def parts(self, run: NightRun | Mapping[str, Any]) -> list[NightPart]:
        """The parts to score. They do not depend on each other."""
        staged = self._staged(_read(NightRun, run))
        return [
            NightPart(metrics=tuple(family), shard=shard)
            for family, shard in list_parts(self.settings, staged)
        ]

    def score(
        self, run: NightRun | Mapping[str, Any], part: NightPart | Mapping[str, Any]
    ) -> str | None:
        """Score one part. Returns why that is impossible, for `publish`; None where it is scored.

        After the deadline of the settings no judge gets a request, and rows that need one are
        `judge_failed`. Raises errors that a retry may mend, and JudgePending while a batch is open.
        """
        run, part = _read(NightRun, run), _read(NightPart, part)
        until = _after(run.begun, self.settings.deadline)
        try:
            score_part(self.settings, run.ref, part.metrics, part.shard, until=until)
        except RagmetricsError as error:
            if error.transient:
                raise
            return str(error)
        return None

    def publish(
        self, run: NightRun | Mapping[str, Any], problems: Sequence[str | None] = ()
    ) -> Manifest:
        """Evaluate the alert rules and write the manifest. `problems` are what `score` returned.

        Rows of a part that is not scored are `judge_failed`. Raises StoreError if the manifest
        could not be written.
        """
        run = _read(NightRun, run)
        known = [*filter(None, problems), *run.problems]
        with self._deadline(run):
            manifest = Night(self.settings).publish(self._staged(run), known)
            stored = Runs(open_store(self.settings)).find(run.ref)
        if stored is None or stored.finished_at != manifest.finished_at:
            raise StoreError(f"the manifest of run {run.ref.run} is not written", transient=True)
        return manifest

    def alert(self, run: NightRun | Mapping[str, Any]) -> NightResult:
        """Send the messages of a published night, write its pages, and write its scores back.

        If the settings use a learned judge, it is then fitted again.

        Raises CoverageShort at the end if something could not be scored, sent or shown.
        """
        run = _read(NightRun, run)
        with self._deadline(run):
            return finish_night(self.settings, self._manifest(run), run.unwritten)

    def _deadline(self, run: NightRun) -> AbstractContextManager[None]:
        return use_deadline(deadline_at(_after(run.begun, self.settings.deadline)))

    def _staged(self, run: NightRun) -> Staged:
        files, folder = open_store(self.settings), run.ref.folder("rows")
        staged = Staged.find(files, folder)
        if staged is None:
            raise StoreError(f"{files.uri(folder)}: not staged: repeat the step `stage`")
        return staged

    def _manifest(self, run: NightRun) -> Manifest:
        files = open_store(self.settings)
        manifest = Runs(files).find(run.ref)
        if manifest is None:
            raise StoreError(
                f"{files.uri()}: run {run.ref.run} of {run.ref.date} has no manifest: repeat the "
                "step `publish`"
            )
        return manifest


def _read(kind: type[Reference], stored: Reference | Mapping[str, Any]) -> Reference:
    """A reference as a scheduler has stored it. Raises InputError for what is none."""
    try:
        return kind.model_validate(stored)
    except ValidationError as error:
        why = explain_validation_error(error)
        raise InputError(f"not what an earlier step returned: {kind.__name__}: {why}") from None


def _after(begun: datetime, longest: timedelta) -> datetime:
    try:
        return begun + longest
    except OverflowError:
        raise InputError(f"the night began at {begun}: outside the calendar") from None
