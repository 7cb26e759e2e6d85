"""Delivery: sends the nights of the outbox to the configured targets, oldest first.

    night into the outbox -> batch to the target -> digests of the batch -> ... -> out of the outbox

A target that is down, or whose key is missing, delays no other target and raises nothing: its
nights stay in the outbox, and the report and the log say why.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import islice

from ragmetrics.config import TARGETS, Settings, WriteBackSettings
from ragmetrics.delivery.write_back import outbox
from ragmetrics.delivery.write_back.evaluation_results import EvaluationResult, ResultReader
from ragmetrics.delivery.write_back.outbox import WaitingNight
from ragmetrics.delivery.write_back.sender import Sender
from ragmetrics.delivery.write_back.target import GuardedTarget, Target
from ragmetrics.errors import InputError, RagmetricsError, StoreError
from ragmetrics.records import Manifest
from ragmetrics.storage import Files, Runs
from ragmetrics.text import clean

log = logging.getLogger(__name__)
EARLY_FOR = timedelta(days=1)
"""How long a score waits for its span. Tracing tools take spans in batches, and may be behind."""
_EARLY = "their spans are not there yet"


@dataclass
class WriteBackReport:
    """What one target got of one night in one run."""

    night: date
    target: str
    sent: int = 0
    """Scores that the target took in this run."""
    before: int = 0
    """Scores that it took, or refused, in an earlier run."""
    refused: int = 0
    """Scores that it refused in this run."""
    refusal: str = ""
    """Why it refused one of them."""
    unfit: dict[str, int] = field(default_factory=dict)
    """Scores that cannot be sent there, by reason."""
    early: int = 0
    """Scores whose span the target does not have yet; they wait for a day, then are refused."""
    waiting: int = 0
    """Scores that wait for the next run, with the early ones."""
    problem: str = ""
    """Why they wait; empty if all others are sent."""

    def __str__(self) -> str:
        """One line for people."""
        parts = [f"{self.sent:,} scores sent"]
        if self.before:
            parts.append(f"{self.before:,} were sent before")
        if self.refused:
            parts.append(f"{self.refused:,} refused ({self.refusal})")
        parts += [f"{count:,} left out ({reason})" for reason, count in self.unfit.items()]
        if self.early:
            parts.append(f"{self.early:,} wait for spans that the tool does not have yet")
        if self.problem:
            left = self.waiting - self.early
            parts.append(f"{left:,} wait for the next run ({self.problem})")
        return f"{self.target}: night {self.night}: {', '.join(parts)}"


def queue_night(
    settings: Settings, files: Files, manifest: Manifest, only: str | None = None
) -> None:
    """Record that the scores of a night are to be sent to the targets, or to `only` one of them.

    A run that is not the current run of its night is not recorded. Raises InputError for a target
    that is not configured, StoreError if it cannot be recorded.
    """
    names = _names(settings, only)
    if Runs(files).is_current(manifest):
        outbox.add(files, manifest, names)


def send_waiting(
    settings: Settings,
    files: Files,
    *,
    newest: date | None = None,
    night: date | None = None,
    only: str | None = None,
    again: bool = False,
    now: datetime | None = None,
) -> list[WriteBackReport]:
    """Send what waits in the outbox; return a report for each night and target.

    `newest` is the newest night: nights that are too old for it are given up. Without it none is.
    `night` sends only this night, and tries refused scores again; with `again` also scores that
    were sent. Errors are in the reports and in the log; none is raised but InputError for a target
    that is not configured, and StoreError if the outbox cannot be listed. `now` is the current
    time unless given.
    """
    now = now or datetime.now(UTC)
    names, reports = _names(settings, only), []
    listed = [one for one in outbox.waiting(files) if night in (None, one.night)]
    for name in names:
        nights = [one for one in listed if one.target == name]
        retry = night is not None
        round_ = _Round(settings, files, name, now, retry=retry, again=again)
        reports += round_.run(_unexpired(files, nights, newest))
    if only is None:
        _drop_unconfigured(files, listed, names)
    for report in reports:
        log.log(logging.WARNING if report.problem or report.refused else logging.INFO, "%s", report)
    return reports


def target_problems(
    settings: Settings, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Each configured target, with the reason why nothing can be sent there; empty if there is
    none. Nothing is sent.
    """
    problems = {}
    for name in _names(settings, None):
        problems[name] = ""
        try:
            if settings.write_back:
                _make_target(name, settings.write_back, environment)
        except RagmetricsError as error:
            problems[name] = str(error)
    return problems


def _names(settings: Settings, only: str | None) -> list[str]:
    chosen = settings.write_back
    names = [*chosen.targets] if chosen else []
    if only is None:
        return names
    if only not in names:
        known = ", ".join(names) or "none"
        raise InputError(f"{only!r} is not a target of `write_back:`; the targets are: {known}")
    return [only]


@dataclass
class _Round:
    """One run's attempt to send the waiting nights of one target."""

    settings: Settings
    files: Files
    name: str
    now: datetime
    retry: bool
    again: bool

    def run(self, nights: Sequence[WaitingNight]) -> list[WriteBackReport]:
        """Send nights until the target fails; the other nights wait for the same reason."""
        chosen = self.settings.write_back
        if not nights or chosen is None:
            return []
        try:
            target = _make_target(self.name, chosen, os.environ)
        except RagmetricsError as error:
            return [self._kept(night, str(error)) for night in nights]
        try:
            sender = Sender(target, chosen)
            reports: list[WriteBackReport] = []
            for night in nights:
                failed = next((report.problem for report in reports if report.problem), "")
                report = self._kept(night, failed) if failed else self._send_safely(night, sender)
                reports += [report] if report else []
            return reports
        finally:
            target.close()

    def _kept(self, one: WaitingNight, problem: str) -> WriteBackReport:
        self._save(one.model_copy(update={"problem": problem}))
        return WriteBackReport(
            one.night, self.name, waiting=one.waiting or 0, problem=clean(problem, 500)
        )

    def _save(self, one: WaitingNight) -> None:
        try:
            outbox.save(self.files, one)
        except StoreError as error:  # the night is in the outbox all the same
            log.error("the state of write-back cannot be stored: %s", error)

    def _send_safely(self, waiting: WaitingNight, sender: Sender) -> WriteBackReport | None:
        """Send a night; None if another run has replaced it."""
        report = WriteBackReport(waiting.night, self.name)
        try:
            manifest = Runs(self.files).find(waiting.ref)
            if manifest is None and self.files.exists(waiting.ref.manifest):
                raise StoreError(f"{waiting.ref.manifest} cannot be read: its scores wait")
            if manifest is None or not Runs(self.files).is_current(manifest):
                log.info("%s: run %s of %s is replaced", self.name, waiting.run, waiting.night)
                outbox.remove(self.files, waiting)
                return None
            since = waiting.early_since or self.now
            waits = self.now - since < EARLY_FOR
            reader = ResultReader(self.settings, self.files, manifest)
            self._send(reader, sender, report, waits=waits)
            if not (report.problem or report.waiting):
                outbox.remove(self.files, waiting)
        except StoreError as error:
            report.problem = clean(str(error), 500)
        if report.problem or report.early:
            state = {
                "problem": report.problem or _EARLY,
                "waiting": report.waiting,
                "early_since": waiting.early_since or (self.now if report.early else None),
            }
            self._save(waiting.model_copy(update=state))
        return report

    def _send(
        self, reader: ResultReader, sender: Sender, report: WriteBackReport, *, waits: bool
    ) -> None:
        target, night = sender.target, report.night
        before = outbox.confirmed(self.files, night, target.key)
        todo = self._todo(reader, target, before, report)
        for batch in _batches(todo, sender.settings.batch_size):
            if report.problem:
                report.waiting += len(batch)
                continue
            try:
                outcome = sender.send(batch)
            except RagmetricsError as error:
                report.problem = clean(str(error), 500)
                report.waiting += len(batch)
                continue
            early = outcome.early if waits else {}
            refused = {**outcome.refused, **({} if waits else outcome.early)}
            kept = refused.keys() | early.keys()
            sent = [one.digest for one in batch if one.digest not in kept]
            outbox.confirm(self.files, night, target.key, sent, refused)
            report.sent += len(sent) - outcome.unnamed
            report.early += len(early)
            report.waiting += len(early)
            report.refused += len(refused) + outcome.unnamed
            reasons = [*refused.values(), outcome.reason]
            report.refusal = report.refusal or reasons[0]
        outbox.merge(self.files, night, target.key)
        if unknown := reader.unknown_rows():
            report.unfit["rows without a trace id or a span id"] = unknown

    def _todo(
        self,
        reader: ResultReader,
        target: Target,
        before: outbox.Confirmed,
        report: WriteBackReport,
    ) -> Iterator[EvaluationResult]:
        """The results that are not confirmed; counts the others in the report."""
        unfit, seen = Counter[str](), set[str]()
        for result in reader.results(documents=target.documents):
            if reason := target.unfit(result):
                unfit[reason] += 1
                continue
            digest = result.digest
            done = digest in before.sent or (digest in before.refused and not self.retry)
            if done and not self.again:
                report.before += 1
            elif digest not in seen:  # two rows of one span, with equal scores
                seen.add(digest)
                yield result
        report.unfit |= unfit


def _unexpired(
    files: Files, nights: Iterable[WaitingNight], newest: date | None
) -> list[WaitingNight]:
    """The nights that are not too old; the others are given up."""
    kept = []
    for night in nights:
        if newest is None or (newest - night.night).days < outbox.LONGEST_DAYS:
            kept.append(night)
            continue
        where = outbox.give_up(files, night)
        log.error(
            "%s: the scores of %s are given up after %d days (%s); see %s",
            night.target,
            night.night,
            outbox.LONGEST_DAYS,
            night.problem,
            where,
        )
    return kept


def _drop_unconfigured(
    files: Files, nights: Iterable[WaitingNight], names: Collection[str]
) -> None:
    """Drop nights of targets that were removed from the settings."""
    for night in nights:
        if night.target not in names:
            what = night.target, night.night
            log.warning("%s: not in the settings any more; %s is dropped", *what)
            outbox.remove(files, night)


def _batches(results: Iterator[EvaluationResult], size: int) -> Iterator[list[EvaluationResult]]:
    while batch := list(islice(results, size)):
        yield batch


def _make_target(name: str, chosen: WriteBackSettings, environment: Mapping[str, str]) -> Target:
    """The target of a name. Raises TargetError without its key, or if its code fails."""
    kind, settings = TARGETS.find(name), chosen.targets[name]
    return GuardedTarget(name, lambda: kind.make(settings, chosen.timeout_seconds, environment))
