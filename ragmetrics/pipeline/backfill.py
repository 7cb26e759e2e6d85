"""Backfill: scores past nights as their nightly runs would have done, oldest first.

Several nights are scored at once. They are published one after the other in the order of their
dates, because each is compared with earlier ones. Work that is in the store is not repeated: a
backfill that was killed continues where it stopped.
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

from ragmetrics.config import Settings, log_files_of_day, night_before
from ragmetrics.dashboard import is_shown, refresh_dashboard
from ragmetrics.delivery import Delivery, newest_told
from ragmetrics.errors import InputError, JudgePending, JudgeRefused, RagmetricsError, StoreError
from ragmetrics.logs import days_of, find_logs
from ragmetrics.pipeline.nightly import Night, NightResult
from ragmetrics.records import Deadline, Manifest, deadline_at, use_deadline
from ragmetrics.scoring import Staged
from ragmetrics.storage import Runs, open_store, taking_turns

T = TypeVar("T")

Outcome = Literal["published", "kept", "no logs", "pending", "failed", "not begun"]
"""`kept`: it was published before. `pending`: it waits for its batches, or for an earlier night
that does; the same command continues it."""
_MOST_LISTED = 20
MOST_NIGHTS = 3_660
"""Ten years. A longer range is probably a typing error."""


@dataclass(frozen=True)
class PastNight:
    """The result of one night."""

    date: date
    outcome: Outcome
    reason: str = ""


Tell = Callable[[PastNight, int, int], None]
"""Called after each night with its result, the number of finished nights, and their total."""


class BackfillShort(RagmetricsError):
    """Some nights could not be finished. All others are published."""


@dataclass(frozen=True)
class Backfill:
    """The results of all nights, oldest first."""

    nights: tuple[PastNight, ...]
    unshown: str = ""
    """Why the overview pages could not be written; empty if they were."""

    def dates(self, *outcomes: Outcome) -> list[date]:
        """The nights with one of these outcomes."""
        return [one.date for one in self.nights if one.outcome in outcomes]

    def __str__(self) -> str:
        """The number of nights by outcome, and the nights without logs."""
        counts = Counter(one.outcome for one in self.nights)
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
        text = f"{len(self.nights)} nights: {outcomes}"
        if missing := self.dates("no logs"):
            text += f"\nNo logs: {', '.join(str(day) for day in missing)}"
        return text

    def check(self) -> None:
        """Raise BackfillShort, which names them, when nights are unfinished."""
        left = [one for one in self.nights if one.outcome in ("failed", "pending", "not begun")]
        if not left and not self.unshown:
            return
        if not left:
            raise BackfillShort(
                f"all nights are published, but the dashboard does not show them: {self.unshown}"
            )
        reasons = [f"{one.date}: {one.reason}" for one in left[:_MOST_LISTED]]
        if len(left) > _MOST_LISTED:
            reasons.append(f"and {len(left) - _MOST_LISTED} more")
        if self.unshown:
            reasons.append(f"the dashboard: {self.unshown}")
        raise BackfillShort(
            f"{len(left)} of {len(self.nights)} nights are not finished; run the same command "
            "again to continue: " + "; ".join(reasons)
        )


class Steps(Protocol):
    """The steps of a night: plain functions here, tasks in the flow."""

    def stage(self, day: date) -> Staged:
        """Stage the night."""

    def score(self, staged: Staged) -> Sequence[RagmetricsError]:
        """Score it. Returns the errors of parts that could not be scored. Called in a thread."""

    def publish(self, staged: Staged, problems: Sequence[str], *, silent: bool) -> Manifest:
        """Evaluate its rules and write its manifest."""

    def alert(self, manifest: Manifest) -> Delivery:
        """Send its alerts."""

    def show(self, manifest: Manifest, *, overview: bool) -> None:
        """Write its own pages of the dashboard. Raises StoreError."""


def check_range(
    settings: Settings, first: date | None, last: date | None, at_once: int = 1
) -> list[date]:
    """The nights from `first` to `last`; None: to yesterday in the zone of the nights. With
    `split_nights` only those that have rows, and `first` may be None: the first that has.

    Raises InputError for an empty range, for more than MOST_NIGHTS, for nights in the future, and
    when several nights have the same logs.
    """
    if at_once < 1:
        raise InputError(f"backfill: {at_once} nights at once; the number should be 1 or more")
    yesterday = night_before(datetime.now(UTC), settings.time_zone)
    today, last = yesterday + timedelta(days=1), last or yesterday
    logged = days_of(settings) if settings.split_nights else []
    first = first or next(iter(logged), None)
    if first is None:
        raise InputError("backfill: which is the first night? --first DATE")
    if first > last:
        raise InputError(f"backfill: the first night, {first}, is after the last, {last}")
    if last > today:
        raise InputError(f"backfill: the last night, {last}, is in the future; today is {today}")
    count = (last - first).days + 1
    if count > MOST_NIGHTS:
        raise InputError(
            f"backfill: {count:,} nights from {first} to {last}; at most {MOST_NIGHTS:,} are "
            "allowed at a time; choose a later first night"
        )
    days = [first + timedelta(days=number) for number in range(count)]
    if settings.split_nights:
        if not (some := [day for day in days if day in logged]):
            raise InputError(f"backfill: no row of {settings.logs} is from {first} to {last}")
        return some
    if len({log_files_of_day(settings.logs, day) for day in days}) < len(days):
        raise InputError(
            f"logs: {settings.logs}: several nights have the same location; a backfill needs a "
            "template that contains the day, such as logs/dt={date}/, or `split_nights: true` "
            "where one log has many days"
        )
    return days


def run_backfill(
    settings: Settings,
    first: date | None = None,
    last: date | None = None,
    *,
    at_once: int = 2,
    alerts: bool = False,
    again: bool = False,
    tell: Tell | None = None,
) -> Backfill:
    """Score and publish the nights from `first` to `last`, or to yesterday, without Prefect. With
    `split_nights`, without a `first`, from the first day of the log.

    At most `at_once` nights are scored at a time. A local judge uses all cores, so it scores one
    night at a time. Nights without a log are left out. Published nights are kept; `again`
    republishes them from the scores in the store and scores rows without a verdict again.
    With `alerts`, messages are sent for each night that is newer than the last night with a sent
    message, as if it were tonight. Without it, nothing is sent.
    Raises InputError for an invalid range or settings, and when no night has a log. The result has
    the outcome of each night.
    """
    days = check_range(settings, first, last, at_once)
    Night(settings).check()
    at_once = at_once if any(one.remote for one in settings.panel) else 1
    return fill(settings, days, Night(settings), at_once, alerts=alerts, again=again, tell=tell)


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
    """Run the nights by their steps, as `run_backfill` describes, one backfill of a folder at once:
    of processes that run together, each would pay for an equal request."""
    scheduler = _Scheduler(settings, steps, alerts, again)
    ended: list[PastNight] = []
    with taking_turns(open_store(settings), "backfill", f"backfill of {days[0]} to {days[-1]}"):
        for night in scheduler.run(days, at_once):
            ended.append(night)
            if tell:
                tell(night, len(ended), len(days))
    if all(one.outcome == "no logs" for one in ended):
        raise InputError(
            f"backfill: no night from {days[0]} to {days[-1]} has a log in {settings.logs}"
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
    deadline: Deadline | None


class _Scheduler:
    """Starts the nights and publishes them in order."""

    def __init__(self, settings: Settings, steps: Steps, alerts: bool, again: bool) -> None:
        self._settings, self._steps, self._alerts, self._again = settings, steps, alerts, again
        self._files = open_store(settings)
        self._waiting: date | None = None
        """The first night that cannot be published yet. No later night can be published either."""
        self._refused: JudgeRefused | None = None

    def run(self, days: Sequence[date], at_once: int) -> Iterator[PastNight]:
        """The results of the nights in order, as they end."""
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
            until = datetime.now(UTC) + self._settings.deadline
            with use_deadline(deadline := deadline_at(until)):
                staged = self._steps.stage(day)
            # Once per calendar day, for all nights that are judged on it.
            Night(self._settings).judge_drift_labels(until)
        except RagmetricsError as error:
            return PastNight(day, "failed", str(error))
        return _Begun(staged, _in_thread(lambda: self._steps.score(staged)), deadline)

    def _is_done(self, day: date) -> bool:
        """True when the night's current run is complete, shown, and notified if `alerts`."""
        current = Runs(self._files).current(day)
        if current is None or current.run != Night(self._settings).find_run(day).run:
            return False
        shown = is_shown(self._files, current)
        complete = not current.problems and not NightResult(current, _NOT_SENT).shortfalls
        return shown and complete and not (self._alerts and self._is_unsent(day))

    def _is_unsent(self, day: date) -> bool:
        """True when neither this night nor a newer one was published with messages."""
        newest = newest_told(self._files)
        return newest is None or day > newest

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
                return PastNight(day, "pending", f"waits until {self._waiting} is published")
            with use_deadline(begun.deadline):
                missing = self._publish(begun.staged, [str(one) for one in problems])
        except JudgeRefused as error:
            self._refused = error
            return PastNight(day, "failed", str(error))
        except RagmetricsError as error:
            return PastNight(day, "failed", str(error))
        return PastNight(day, "failed" if missing else "published", "; ".join(missing))

    def _publish(self, staged: Staged, problems: Sequence[str]) -> list[str]:
        """Publish a night, and send its alerts if wanted. Returns what is missing."""
        day = staged.ref.date
        newest = newest_told(self._files) if self._alerts else None
        silent = not self._alerts or (newest is not None and day < newest)
        manifest = self._steps.publish(staged, problems, silent=silent)
        delivery = _NOT_SENT if silent else self._steps.alert(manifest)
        shown = self._show(manifest)
        return [*NightResult(manifest, delivery).shortfalls, *shown, *staged.problems]

    def _show(self, manifest: Manifest) -> list[str]:
        try:
            self._steps.show(manifest, overview=False)
        except StoreError as error:
            return [str(error)]
        return []


_NOT_SENT = Delivery(None, sent=False)


def _in_thread(work: Callable[[], T]) -> Future[T]:
    """Run it in a daemon thread, which does not block the end of an interrupted process."""
    done: Future[T] = Future()
    context = contextvars.copy_context()  # a flow's tasks find their flow in it

    def run() -> None:
        try:
            done.set_result(context.run(work))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="ragmetrics-backfill", daemon=True).start()
    return done
