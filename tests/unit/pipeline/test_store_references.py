"""What prune may not remove: in any order of steps, with failures between them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings as hypothesis_settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ragmetrics.comparison import save_gate
from ragmetrics.delivery.state import AlertStates
from ragmetrics.delivery.write_back.outbox import WaitingNight, save as save_waiting
from ragmetrics.errors import InputError, StoreError
from ragmetrics.pipeline import prune, removal, store_references
from ragmetrics.pipeline.retention import Retention, plan_removal
from ragmetrics.records import AlertState, Notification
from ragmetrics.scoring.reuse import ReusableRun, Reuse
from ragmetrics.storage import Files, LearnedJudges, RunRef, Runs, save_record
from tests.fakes.aged_store import AgedStore, aged_store, morning_after
from tests.fakes.gated import promoted
from tests.fakes.learned import learned
from tests.fakes.logs import write_jsonl
from tests.fakes.nights import FIRST, finding, night

pytestmark = pytest.mark.usefixtures("without_pages")

MODEL = learned()
RETENTION = Retention(timedelta(days=60), timedelta(days=14))
FOR_EVER = 100_000
OLD = FIRST
NOW = morning_after(FIRST + timedelta(days=400))


@pytest.fixture
def store(tmp_path: Path) -> AgedStore:
    """Two old runs of one night, the second current, and the 90 newest nights."""
    made = aged_store(tmp_path)
    made.add_run(OLD, "first")
    made.add_run(OLD, "second", at=morning_after(OLD) + timedelta(hours=1))
    for number in range(90):
        made.add_run(OLD + timedelta(days=300 + number), f"night-{number}")
    return made


def removable(store: AgedStore, run: str) -> list[str]:
    """The files of a run that can be removed."""
    plan = plan_removal(store.settings, RETENTION, NOW)
    return [info.path for info in plan.files if f"run={run}" in info.path]


def with_settings(store: AgedStore, **changes: Any) -> AgedStore:
    """The store under other settings."""
    return aged_store(Path(store.settings.store).parent, **changes)


def test_old_runs_that_nothing_refers_to_can_go(store: AgedStore) -> None:
    """All their files."""
    assert len(removable(store, "first")) == len(removable(store, "second")) == 4


def test_the_newest_nights_stay_however_old(store: AgedStore) -> None:
    """Rules compare 90 nights, and pages of the newest 14 are written again from the rows of 15."""
    plan = plan_removal(store.settings, RETENTION, NOW + timedelta(days=2_000))
    paths = [info.path for info in plan.files if "run=night-" in info.path]
    assert {path.split("/")[0] for path in paths} == {"rows"}
    assert not [path for path in paths if int(path.split("night-")[1].split("/")[0]) >= 75]
    assert [path for path in paths if "run=night-74/" in path]


def pinned(store: AgedStore) -> AgedStore:
    """A rule of the settings pins the run."""
    pin = {"metric": "context_recall", "max_drop": 0.1, "versus": "pinned:first"}
    return with_settings(store, alerts={"rules": [pin]})


def labelled(store: AgedStore) -> AgedStore:
    """A label is of a row of the night."""
    label = {"user_input": "Why?", "date": str(OLD), "context_recall": 1.0, "person": "me"}
    place = write_jsonl(Path(store.settings.store).parent / "labels.jsonl", [label])
    return with_settings(store, labels=str(place))


def fitted(store: AgedStore) -> AgedStore:
    """The learned judge was fitted on the run."""
    LearnedJudges(store.files).save(MODEL.model_copy(update={"runs": ["first"]}))
    return store


def waits(store: AgedStore) -> AgedStore:
    """A tracing tool has not confirmed the run."""
    save_waiting(store.files, WaitingNight(night=OLD, run="first", shards=1, target="phoenix"))
    return store


def reused(store: AgedStore) -> AgedStore:
    """A run in progress may take parts of the run."""
    store.add_run(OLD, "third", finished=False, at=NOW - timedelta(hours=2))
    one = ReusableRun(ref=RunRef(date=OLD, run="first", shards=1), shards=(0,), metrics=("a",))
    save_record(store.files, f"rows/dt={OLD}/run=third/reuse.json", Reuse(earlier=(one,)))
    return store


@pytest.mark.parametrize("refer", [pinned, labelled, fitted, waits, reused])
def test_a_run_that_something_refers_to_stays_whole(
    store: AgedStore, refer: Callable[[AgedStore], AgedStore]
) -> None:
    """Superseded or not, with its rows; labels are of the current run of their night."""
    run = "second" if refer is labelled else "first"
    referring = refer(store)
    assert removable(referring, run) == []
    assert f"{OLD} {run}" in plan_removal(referring.settings, RETENTION, NOW).needed


def test_a_run_of_the_last_day_is_not_called_one_in_progress(store: AgedStore) -> None:
    """It may be a night that was published an hour ago."""
    store.add_run(OLD, "third", at=NOW - timedelta(hours=1))
    why = plan_removal(store.settings, RETENTION, NOW).needed[f"{OLD} third"]
    assert why == "it changed in the last day, or such a run uses it"


@pytest.mark.parametrize("by", ["settings", "findings"])
def test_a_run_that_the_newest_night_pinned_stays_without_its_settings(
    store: AgedStore, by: str
) -> None:
    """`ragmetrics prune STORE` beside no settings: the newest night says what its rules pin."""
    pin = {"metric": "context_recall", "max_drop": 0.1, "versus": "pinned:first"}
    key = "helpdesk/context_recall/all/max_drop 0.1 versus pinned:first"
    fields: dict[str, Any] = {
        "settings": {"settings": {"alerts": {"rules": [pin]}}},
        "findings": {"findings": [finding(key=key)]},
    }[by]
    at = morning_after(FIRST + timedelta(days=391))
    newest = night(391, run="newest", started_at=at, finished_at=at, **fields)
    Runs(store.files).save(newest)
    assert removable(store, "first") == []


def test_a_run_from_which_an_escalation_is_measured_keeps_its_scores(store: AgedStore) -> None:
    """While its alert fires."""
    state = AlertState(state="firing", notified=Notification(night=OLD, run="first"))
    newest = Runs(store.files).outlines(last=1)[0].date
    save_record(store.files, "alerts/state.json", AlertStates(night=newest, states={"a": state}))
    assert {path.split("/")[0] for path in removable(store, "first")} == {"rows"}


def test_the_current_run_stays_beside_an_older_one_that_is_needed(store: AgedStore) -> None:
    """Else the superseded run would be the night's again."""
    assert {path.split("/")[0] for path in removable(pinned(store), "second")} == {"rows"}


def test_a_run_in_progress_stays_however_old_its_night(store: AgedStore) -> None:
    """A backfill of last year, of which only one file changed today."""
    store.add_run(OLD, "backfill", finished=False)
    assert len(removable(store, "backfill")) == 3
    path = store.paths(OLD, "backfill")[-1]
    hour_ago = (NOW - timedelta(hours=1)).timestamp()
    os.utime(path, (hour_ago, hour_ago))
    assert removable(store, "backfill") == []


def test_gates_keep_the_runs_of_the_serving_build(store: AgedStore) -> None:
    """The build that was promoted last; the runs of other builds go with age."""
    save_gate(store.files, promoted("idx-44", logs="builds/idx-44/"))
    gates = AgedStore(store.settings.model_copy(update={"store": f"{store.settings.store}/gates"}))
    for build in ("idx-44", "idx-41"):
        gates.add_gate(build)
    assert removable(store, "idx-44") == []
    assert len(removable(store, "idx-41")) == 3


def test_gates_and_the_golden_set_are_known_without_settings(store: AgedStore) -> None:
    """`ragmetrics prune STORE` beside no settings: the newest night says whose they are."""
    save_gate(store.files, promoted("idx-44", logs="builds/idx-44/"))
    gates = AgedStore(store.settings.model_copy(update={"store": f"{store.settings.store}/gates"}))
    gates.add_gate("idx-44")
    at = morning_after(FIRST + timedelta(days=390))
    settings = {"golden": "golden.jsonl"}
    newest = night(390, run="newest", started_at=at, finished_at=at, settings=settings)
    Runs(store.files).save(newest)
    elsewhere = with_settings(store, dataset="default")
    assert removable(elsewhere, "idx-44") == []
    plan = plan_removal(elsewhere.settings, RETENTION, NOW + timedelta(days=200))
    assert not [
        info for info in plan.files if "rows/" in info.path and "run=night-40/" in info.path
    ]


def test_unreadable_labels_stop_a_removal(store: AgedStore) -> None:
    """It is unknown which nights they are of."""
    with pytest.raises(InputError, match="labels nowhere: no such file"):
        plan_removal(with_settings(store, labels="nowhere").settings, RETENTION, NOW)


class Pruned(RuleBasedStateMachine):
    """Runs come, are referred to and are pruned, in any order; some removals fail."""

    @initialize()
    def begin(self) -> None:
        """An empty store."""
        self.folder = tempfile.TemporaryDirectory()
        # Nights here have no findings: an alert stays open for ever without them.
        self.store = aged_store(Path(self.folder.name), alerts={"remind_days": FOR_EVER})
        self.day, self.count = FIRST, 0
        self.runs: dict[str, date] = {}
        self.open: dict[str, datetime] = {}
        self.needed: dict[str, set[Path]] = {}
        self.learned: set[str] = set()
        mock.patch.object(removal, "refresh_builds").start()  # slow, and not in question here
        for name in ("NEEDED_NIGHTS", "COMPARED_NIGHTS", "_ROW_NIGHTS"):
            mock.patch.object(store_references, name, 2).start()  # few nights are enough to be old

    @property
    def now(self) -> datetime:
        """The morning after the newest day."""
        return morning_after(self.day)

    def need(self, run: str, *, rows: bool = True) -> None:
        """From now on the run's files must stay."""
        paths = self.store.paths(self.runs[run], run)
        self.needed[run] = {one for one in paths if rows or "/rows/" not in str(one)}

    @rule(days=st.integers(1, 200))
    def wait(self, days: int) -> None:
        """Nightlies go on; runs in progress that did nothing meanwhile are given up."""
        self.day += timedelta(days=days)
        self.open.clear()
        self.add(back=1, finished=True)
        self.add(back=0, finished=True)

    @rule(back=st.integers(0, 500), finished=st.booleans())
    def add(self, back: int, finished: bool) -> None:
        """A nightly, a rerun or a backfill writes a run."""
        self.count += 1
        run, day = f"r{self.count}", self.day - timedelta(days=back)
        self.store.add_run(day, run, finished=finished, at=self.now)
        self.runs[run] = day
        if not finished:
            self.open[run] = self.now

    def some(self, data: st.DataObject) -> str | None:
        """A run that is there whole."""
        whole = [run for run, day in self.runs.items() if len(self.store.paths(day, run)) >= 3]
        return data.draw(st.sampled_from(sorted(whole))) if whole else None

    @rule(data=st.data())
    def pin(self, data: st.DataObject) -> None:
        """A rule pins a run."""
        if run := self.some(data):
            rules = [*(one.versus for one in self.store.settings.alerts.rules or ())]
            rules.append(f"pinned:{run}")
            known = [
                {"metric": "context_recall", "max_drop": 0.1, "versus": versus}
                for versus in dict.fromkeys(rules)
            ]
            alerts = {"rules": known, "remind_days": FOR_EVER}
            self.store = aged_store(Path(self.folder.name), alerts=alerts)
            self.need(run)

    @rule(data=st.data())
    def learn(self, data: st.DataObject) -> None:
        """A new version of the learned judge is fitted on one more run."""
        if run := self.some(data):
            self.learned.add(run)
            fitted = {"version": len(self.learned), "runs": sorted(self.learned)}
            LearnedJudges(self.store.files).save(MODEL.model_copy(update=fitted))
            self.need(run)

    @rule(data=st.data())
    def fire(self, data: st.DataObject) -> None:
        """An alert's last message is of a run."""
        known = Runs(self.store.files).outlines(last=1)
        if (run := self.some(data)) and known:
            found = self.store.files.find("alerts/state.json")
            alerts = AlertStates.model_validate_json(found) if found else AlertStates()
            day = known[0].date
            told = AlertState(
                state="firing",
                since=day,
                told=day,
                last_night=day,
                finding=finding(key=f"alert {run}"),
                notified=Notification(night=self.runs[run], run=run),
            )
            states = {**alerts.states, f"alert {run}": told}
            alerts = AlertStates(night=known[0].date, states=states)
            save_record(self.store.files, "alerts/state.json", alerts)
            self.need(run, rows=run in self.needed and self._has_rows(run))

    def _has_rows(self, run: str) -> bool:
        return any("/rows/" in str(path) for path in self.needed[run])

    @rule(
        keep=st.sampled_from([60, 400]),
        rows=st.sampled_from([14, 90]),
        fails=st.none() | st.integers(0, 9),
    )
    def prune(self, keep: int, rows: int, fails: int | None) -> None:
        """Everything that can be removed is, or the store fails after some files."""
        retention = Retention(timedelta(days=keep), timedelta(days=rows))
        plan = plan_removal(self.store.settings, retention, self.now)
        left, remove = [fails], Files.remove

        def failing(files: Files, path: str) -> None:
            if left[0] == 0:
                raise StoreError("the bucket is down", transient=True)
            left[0] = left[0] and left[0] - 1
            remove(files, path)

        with mock.patch.object(Files, "remove", failing):
            try:
                prune(self.store.files, plan)
            except StoreError:
                return
        again = plan_removal(self.store.settings, retention, self.now)
        assert not again.files

    @rule(data=st.data())
    def publish_while_pruning(self, data: st.DataObject) -> None:
        """An unfinished run gets its manifest between the listing and the removal: it stays."""
        plan = plan_removal(self.store.settings, RETENTION, self.now)
        doomed = plan.paths("unfinished runs")
        idle = [run for run in self.runs if any(f"run={run}/" in path for path in doomed)]
        run = data.draw(st.sampled_from(idle)) if idle else None
        if run:
            self.store.finish(self.runs[run], run, self.now)
            before = self.store.paths(self.runs[run], run)
        prune(self.store.files, plan)
        if run:
            assert self.store.paths(self.runs[run], run) == before

    @invariant()
    def what_is_needed_is_there(self) -> None:
        """Runs that are referred to, and runs in progress."""
        for paths in self.needed.values():
            assert all(path.exists() for path in paths)
        for run in self.open:
            assert len(self.store.paths(self.runs[run], run)) >= 3

    def teardown(self) -> None:
        """Remove the store."""
        mock.patch.stopall()
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestPruned = Pruned.TestCase
TestPruned.settings = hypothesis_settings(stateful_step_count=12)
