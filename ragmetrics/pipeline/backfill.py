"""A backfill: past nights, each as its nightly would have scored it, the oldest first.

Several nights are scored at once. They are published one after the other, in the order of their
dates, as each is compared with those before it. What is in the store already is not done again: a
backfill that was killed goes on where it was.
"""

from __future__ import annotations

import contextvars
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Literal, Protocol, TypeVar

from ragmetrics.alerts import Delivery, load_alerts
from ragmetrics.config import Settings
from ragmetrics.errors import (
    InputError,
    JudgePending,
    JudgeRefused,
    RagmetricsError,
    StoreError,
)
from ragmetrics.logs import find_logs, log_files_of_day
from ragmetrics.model import Manifest
from ragmetrics.pipeline import nightly as night
from ragmetrics.report import is_shown, refresh_dashboard
from ragmetrics.scoring import Staged, list_parts, score_parts
from ragmetrics.storage import open_store, run_of

T = TypeVar("T")

Outcome = Literal["published", "kept", "no logs", "pending", "failed", "not begun"]
"""`kept`: it was published before; `pending`: its batches are at work, or those of a night before
it, and the same command goes on."""
_MOST_TOLD = 20
MOST_NIGHTS = 3_660
"""Ten years: a longer range is a slip of the pen."""


@dataclass(frozen=True)
class PastNight:
    """What became of one night."""

    date: date
    outcome: Outcome
    reason: str = ""


Tell = Callable[[PastNight, int, int], None]
"""Told of each night as it ends, how many have, and of how many."""


class BackfillShort(RagmetricsError):
    """Some nights could not be done, or not yet; all others are published."""


@dataclass(frozen=True)
class Backfill:
    """What became of all nights, the oldest first."""

    nights: tuple[PastNight, ...]
    unshown: str = ""
    """Why the pages of all nights could not be written."""

    def dates(self, *outcomes: Outcome) -> list[date]:
        """The nights that ended so."""
        return [one.date for one in self.nights if one.outcome in outcomes]

    def __str__(self) -> str:
        """How many ended how, and which nights had no logs."""
        counts = Counter(one.outcome for one in self.nights)
        told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
        text = f"{len(self.nights)} nights: {told}"
        if missing := self.dates("no logs"):
            text += f"\nNo logs: {', '.join(str(day) for day in missing)}"
        return text

    def check(self) -> None:
        """Raise BackfillShort, which names them, where nights are left to do."""
        left = [one for one in self.nights if one.outcome in ("failed", "pending", "not begun")]
        if not left and not self.unshown:
            return
        if not left:
            raise BackfillShort(f"all nights are done, but not shown: {self.unshown}")
        told = [f"{one.date}: {one.reason}" for one in left[:_MOST_TOLD]]
        if len(left) > _MOST_TOLD:
            told.append(f"and {len(left) - _MOST_TOLD} more")
        if self.unshown:
            told.append(f"the dashboard: {self.unshown}")
        raise BackfillShort(
            f"{len(left)} of {len(self.nights)} nights are not done, and the same command goes on "
            "with them: " + "; ".join(told)
        )


class Steps(Protocol):
    """The steps of a night: plain functions here, tasks in the flow."""

    def stage(self, day: date) -> Staged:
        """Stage the night."""

    def score(self, staged: Staged) -> Sequence[RagmetricsError]:
        """Score it; return why parts could not be scored. Called in a thread."""

    def publish(self, staged: Staged, problems: Sequence[str], *, silent: bool) -> Manifest:
        """Judge it by its rules, and write its manifest."""

    def alert(self, manifest: Manifest) -> Delivery:
        """Tell what changed with it."""

    def show(self, manifest: Manifest) -> None:
        """Write its own pages of the dashboard; StoreError where they cannot be."""


def check_range(settings: Settings, first: date, last: date | None, at_once: int = 1) -> list[date]:
    """The nights from `first` to `last`, yesterday in UTC where None; InputError for none at all,
    for more than MOST_NIGHTS or for some that are yet to come, or where the settings give several
    of them the same logs.
    """
    if at_once < 1:
        raise InputError(f"backfill: {at_once} nights at once: there should be one or more")
    today = datetime.now(UTC).date()
    last = last or today - timedelta(days=1)
    if first > last:
        raise InputError(f"backfill: the first night, {first}, is after the last, {last}")
    if last > today:
        raise InputError(f"backfill: the last night, {last}, is yet to come: it is {today} in UTC")
    count = (last - first).days + 1
    if count > MOST_NIGHTS:
        raise InputError(
            f"backfill: {count:,} nights from {first} to {last}, and {MOST_NIGHTS:,} at a time are "
            "the most: name a later first night"
        )
    days = [first + timedelta(days=number) for number in range(count)]
    if len({log_files_of_day(settings.logs, day) for day in days}) < len(days):
        raise InputError(
            f"logs: {settings.logs}: several nights have the same place; a backfill needs a "
            "template with the day in it, as in logs/dt={date}/"
        )
    return days


def run_backfill(
    settings: Settings,
    first: date,
    last: date | None = None,
    *,
    at_once: int = 2,
    alerts: bool = False,
    again: bool = False,
    tell: Tell | None = None,
) -> Backfill:
    """Score and publish the nights from `first` to `last`, or to yesterday, without Prefect.

    At most `at_once` nights are scored at a time; one, where the judge computes here and uses all
    cores. Nights without a log are left out. Nights that their run was published for are kept;
    `again` publishes them anew, of what is in the store and of verdicts that were missing there.
    Nobody is told anything, unless `alerts`:
    then of each night that is newer than the last one that was told of, as if it were tonight.
    Raises InputError for a range or settings that cannot be used, and where no night has a log;
    what became of each night is in the result.
    """
    days = check_range(settings, first, last, at_once)
    night.check_settings(settings)
    at_once = at_once if any(one.remote for one in settings.panel) else 1
    return fill(settings, days, _Plain(settings), at_once, alerts=alerts, again=again, tell=tell)


@dataclass(frozen=True)
class _Plain:
    settings: Settings

    def stage(self, day: date) -> Staged:
        return night.stage_night(self.settings, day)

    def score(self, staged: Staged) -> Sequence[RagmetricsError]:
        until = datetime.now(UTC) + self.settings.deadline  # of each night its own
        wanted = list_parts(self.settings, staged)
        return score_parts(self.settings, staged, wanted, until=until)

    def publish(self, staged: Staged, problems: Sequence[str], *, silent: bool) -> Manifest:
        return night.publish_night(self.settings, staged, problems, silent=silent)

    def alert(self, manifest: Manifest) -> Delivery:
        return night.alert_night(self.settings, manifest)

    def show(self, manifest: Manifest) -> None:
        night.show_night(self.settings, manifest, overview=False)


def fill(
    settings: Settings,
    days: Sequence[date],
    steps: Steps,
    at_once: int,
    *,
    alerts: bool = False,
    again: bool = False,
    tell: Tell | None = None,
) -> Backfill:
    """The nights by their steps; `run_backfill` says how."""
    work = _Work(settings, steps, alerts, again)
    ended: list[PastNight] = []
    for one in work.play(days, at_once):
        ended.append(one)
        if tell:
            tell(one, len(ended), len(days))
    if all(one.outcome == "no logs" for one in ended):
        raise InputError(
            f"backfill: no night from {days[0]} to {days[-1]} has a log: looked for in "
            f"{settings.logs}"
        )
    done = Backfill(tuple(ended))
    if done.dates("published", "kept", "failed"):
        try:
            refresh_dashboard(open_store(settings), done.dates("published", "failed"))
        except StoreError as error:
            return replace(done, unshown=str(error))
    return done


@dataclass(frozen=True)
class _Begun:
    """A night that is being scored."""

    staged: Staged
    scoring: Future[Sequence[RagmetricsError]]


class _Work:
    """What all nights have in common, and what those before leave to those after."""

    def __init__(self, settings: Settings, steps: Steps, alerts: bool, again: bool) -> None:
        self._settings, self._steps, self._alerts, self._again = settings, steps, alerts, again
        self._files = open_store(settings)
        self._waiting: date | None = None
        """The first night that cannot be published yet: none after it can."""
        self._refused: JudgeRefused | None = None

    def play(self, days: Sequence[date], at_once: int) -> Iterator[PastNight]:
        """The nights in order, as they end."""
        under_way: deque[tuple[date, _Begun | PastNight]] = deque()
        for day in days:
            while sum(isinstance(one, _Begun) for _, one in under_way) >= at_once:
                yield self._end(*under_way.popleft())
            under_way.append((day, self._begin(day)))
            while under_way and isinstance(under_way[0][1], PastNight):
                yield self._end(*under_way.popleft())
        while under_way:
            yield self._end(*under_way.popleft())

    def _begin(self, day: date) -> _Begun | PastNight:
        if self._refused:
            return PastNight(day, "not begun", "the judge refused a night before it")
        try:
            _, infos = find_logs(self._settings.logs, self._settings.storage_options, day=day)
            if not infos:
                return PastNight(day, "no logs")
            if not self._again and self._is_done(day):
                return PastNight(day, "kept")
            staged = self._steps.stage(day)
            # Once a day, for all nights judged that day.
            night.judge_drift_labels(self._settings, datetime.now(UTC) + self._settings.deadline)
        except RagmetricsError as error:
            return PastNight(day, "failed", str(error))
        return _Begun(staged, _in_thread(lambda: self._steps.score(staged)))

    def _is_done(self, day: date) -> bool:
        """Whether the night's own run speaks for it, has all it should, and was told of."""
        there = run_of(self._files, day)
        if there is None or there.run != night.find_run(self._settings, day).run:
            return False
        page = is_shown(self._files, there)
        whole = not there.problems and not night.shortfalls(there, _NOTHING_TOLD)
        return page and whole and not (self._alerts and self._is_news(day))

    def _is_news(self, day: date) -> bool:
        """Whether nobody was told of this night, or of a newer one."""
        told = load_alerts(self._files).night
        return told is None or day > told

    def _end(self, day: date, begun: _Begun | PastNight) -> PastNight:
        if isinstance(begun, PastNight):
            return begun
        try:
            problems = begun.scoring.result()
            refused = [one for one in problems if isinstance(one, JudgeRefused)]
            if refused:
                raise refused[0]
            if pending := [one for one in problems if isinstance(one, JudgePending)]:
                self._waiting = self._waiting or day
                return PastNight(day, "pending", str(pending[0]))
            if self._waiting:
                return PastNight(day, "pending", f"is published after {self._waiting}")
            missing = self._publish(begun.staged, [str(one) for one in problems])
        except JudgeRefused as error:
            self._refused = error
            return PastNight(day, "failed", str(error))
        except RagmetricsError as error:
            return PastNight(day, "failed", str(error))
        return PastNight(day, "failed" if missing else "published", "; ".join(missing))

    def _publish(self, staged: Staged, problems: Sequence[str]) -> list[str]:
        """Publish a night, and tell of it where that was asked for; return what is missing."""
        day = staged.ref.date
        told = load_alerts(self._files).night if self._alerts else None
        silent = not self._alerts or (told is not None and day < told)
        manifest = self._steps.publish(staged, problems, silent=silent)
        delivery = _NOTHING_TOLD if silent else self._steps.alert(manifest)
        shown = self._show(manifest)
        return [*night.shortfalls(manifest, delivery), *shown, *staged.problems]

    def _show(self, manifest: Manifest) -> list[str]:
        try:
            self._steps.show(manifest)
        except StoreError as error:
            return [str(error)]
        return []


_NOTHING_TOLD = Delivery(None, sent=False)


def _in_thread(work: Callable[[], T]) -> Future[T]:
    """Do it in a thread, which does not keep a process that is interrupted from ending."""
    done: Future[T] = Future()
    context = contextvars.copy_context()  # a flow's tasks know their flow by it

    def play() -> None:
        try:
            done.set_result(context.run(work))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=play, name="ragmetrics-backfill", daemon=True).start()
    return done


__all__ = [
    "Backfill",
    "BackfillShort",
    "PastNight",
    "Steps",
    "check_range",
    "fill",
    "run_backfill",
]
