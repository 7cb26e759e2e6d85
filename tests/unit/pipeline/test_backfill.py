"""A backfill: past nights in order, as their nightlies would have scored them, and nobody told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragmetrics.config import Settings, make_settings
from ragmetrics.delivery import Delivery
from ragmetrics.delivery.outbox import load_batches
from ragmetrics.errors import InputError, JudgePending, RagmetricsError, StoreError
from ragmetrics.pipeline import Backfill, BackfillShort, Night, fill, nightly as night, run_backfill
from ragmetrics.records import Manifest, Silence, Told
from ragmetrics.rules import silence
from ragmetrics.scoring import Staged
from ragmetrics.storage import Runs, open_store
from tests.builders import judge_at, night_values
from tests.fakes.clients import JudgeServer
from tests.fakes.command import Ended
from tests.fakes.logs import make_rows, write_jsonl
from tests.fakes.processes import ROOT
from tests.fakes.slack import SlackServer

pytestmark = pytest.mark.usefixtures("without_pages")

FIRST = date(2026, 11, 10)
GOODS = (1.0, 0.5, None, 0.5, 1.0, 1.0)
"""Six nights: the second regresses, the third has no log, the fifth is well again."""
DAYS = [FIRST + timedelta(days=number) for number in range(len(GOODS))]
LOGGED = [day for day, good in zip(DAYS, GOODS, strict=True) if good is not None]
RULES = [
    {"metric": "context_recall", "max_drop": 0.05, "versus": "trailing:7"},
    {"metric": "context_recall", "min": 0.8, "by": "channel", "min_rows": 5, "for": 2},
]


def write_logs(folder: Path, goods: Sequence[float | None] = GOODS) -> Path:
    """A log for each night but those that have none."""
    for day, good in zip(DAYS, goods, strict=True):
        if good is not None:
            path = folder / "logs" / f"dt={day}" / "log.jsonl"
            write_jsonl(path, make_rows(30, good=good, night=day))
    return folder


def dataset(folder: Path, store: str = "store", **more: Any) -> Settings:
    """The settings of its nightly; the judge computes here unless another is named."""
    base = night_values(folder, store=store, rules=RULES)
    return make_settings({**base, **more})


def one_by_one(settings: Settings) -> None:
    """What would have been: each night run on its day."""
    for day in LOGGED:
        night.run_night(settings, day)


def manifests(settings: Settings) -> list[Manifest]:
    """Those of all nights, oldest first."""
    return Runs(open_store(settings)).nights()


def told(manifest: Manifest, *without: str) -> list[dict[str, Any]]:
    """The findings of a night, but for some of their fields."""
    return [one.model_dump(exclude=set(without)) for one in manifest.findings]


def told_of(settings: Settings) -> list[Told]:
    """What was told, as it lies in the store."""
    return load_batches(open_store(settings)).told


@pytest.mark.pages
def test_nights_are_published_in_order_and_those_without_logs_are_named(tmp_path: Path) -> None:
    """A manifest and a page for each night with logs, nothing for the others."""
    settings = dataset(write_logs(tmp_path))
    seen: list[tuple[date, int, int]] = []
    done = run_backfill(
        settings, DAYS[0], DAYS[-1], tell=lambda one, count, of: seen.append((one.date, count, of))
    )
    assert done.dates("published") == LOGGED
    assert done.dates("no logs") == [DAYS[2]]
    done.check()
    assert [one.date for one in manifests(settings)] == LOGGED
    finished = [one.finished_at for one in manifests(settings)]
    assert finished == sorted(finished)
    assert seen == [(day, number, 6) for number, day in enumerate(DAYS, 1)]
    pages = {path.parent.name for path in (tmp_path / "store/dashboard").glob("2*/index.html")}
    assert pages == {str(day) for day in LOGGED}
    overview = (tmp_path / "store/dashboard/index.html").read_text()
    assert all(str(day) in overview for day in LOGGED)


@pytest.mark.pages
def test_one_export_of_many_days_becomes_nights(tmp_path: Path) -> None:
    """Each day that has rows, from the first one on; the other days are no nights."""
    rows = [row for day in LOGGED for row in make_rows(8, night=day)]
    write_jsonl(tmp_path / "export.jsonl", rows)
    settings = dataset(tmp_path).model_copy(
        update={"logs": str(tmp_path / "export.jsonl"), "split_nights": True}
    )
    done = run_backfill(settings)
    assert [(one.date, one.outcome) for one in done.nights] == [
        (day, "published") for day in LOGGED
    ]
    assert [one.source.rows for one in manifests(settings)] == [8] * len(LOGGED)
    assert run_backfill(settings, LOGGED[1], LOGGED[2]).dates("kept") == LOGGED[1:3]


def test_one_log_of_all_nights_needs_the_setting(tmp_path: Path) -> None:
    """Without it every night would read the same rows; and where to begin is not known."""
    write_jsonl(tmp_path / "export.jsonl", make_rows(8))
    settings = dataset(tmp_path).model_copy(update={"logs": str(tmp_path / "export.jsonl")})
    with pytest.raises(InputError, match="split_nights: true"):
        run_backfill(settings, DAYS[0], DAYS[1])
    with pytest.raises(InputError, match="which is the first night"):
        run_backfill(settings)


def test_findings_are_those_of_nights_run_one_by_one(
    tmp_path: Path, slack_server: SlackServer
) -> None:
    """Alerts fire, last and end in the manifests as they would have, with the same baselines; but
    nobody is told, and no state is written."""
    past, lived = dataset(write_logs(tmp_path), "past"), dataset(tmp_path, "lived")
    run_backfill(past, DAYS[0], DAYS[-1])
    assert slack_server.received == []
    assert told_of(past) == []
    one_by_one(lived)
    assert len(slack_server.delivered) > 0
    assert "firing" in {finding.state for one in manifests(past) for finding in one.findings}
    for mine, its in zip(manifests(past), manifests(lived), strict=True):
        assert told(mine, "transition") == told(its, "transition")
        assert {finding.transition for finding in mine.findings} == {None}
        assert mine.metrics == its.metrics


def test_with_alerts_people_are_told_as_if_each_night_were_tonight(
    tmp_path: Path, slack_server: SlackServer
) -> None:
    """The same messages, and the same state in the end."""
    past, lived = dataset(write_logs(tmp_path), "past"), dataset(tmp_path, "lived")
    one_by_one(lived)
    expected = [_plain(message, "lived") for message in slack_server.delivered]
    slack_server.delivered.clear()
    run_backfill(past, DAYS[0], DAYS[-1], alerts=True)
    assert [_plain(message, "past") for message in slack_server.delivered] == expected
    assert told_of(past) == told_of(lived)
    for mine, its in zip(manifests(past), manifests(lived), strict=True):
        assert told(mine) == told(its)


def _plain(message: Mapping[str, Any], store: str) -> str:
    return json.dumps(message, sort_keys=True).replace(f"/{store}/", "/store/")


@pytest.mark.pages
def test_with_alerts_after_a_silent_backfill_all_is_told(
    tmp_path: Path, slack_server: SlackServer
) -> None:
    """Nobody was told of these nights yet; and once they were, nobody is told again."""
    settings = dataset(write_logs(tmp_path))
    run_backfill(settings, DAYS[0], DAYS[-1])
    done = run_backfill(settings, DAYS[0], DAYS[-1], alerts=True)
    assert done.dates("published") == LOGGED
    messages = len(slack_server.delivered)
    assert messages > 0
    done = run_backfill(settings, DAYS[0], DAYS[-1], alerts=True)
    assert done.dates("kept") == LOGGED
    assert len(slack_server.delivered) == messages


@pytest.mark.parametrize("alerts", [False, True])
def test_tonight_is_not_disturbed(tmp_path: Path, slack_server: SlackServer, alerts: bool) -> None:
    """Nights older than the last one that was told of change no alert and tell nothing, whether
    alerts were asked for or not."""
    settings = dataset(write_logs(tmp_path))
    night.run_night(settings, DAYS[-1])
    before, messages = told_of(settings), len(slack_server.received)
    run_backfill(settings, DAYS[0], DAYS[-2], alerts=alerts)
    assert told_of(settings) == before
    assert len(slack_server.received) == messages
    assert [one.date for one in manifests(settings)] == LOGGED


def test_the_end_of_a_snooze_is_told_after_a_silent_repetition(
    tmp_path: Path, slack_server: SlackServer
) -> None:
    """The last snoozed night is published anew: the next one still reports that it fires."""
    rules = {"rules": [{"metric": "context_recall", "min": 0.8}]}
    settings = dataset(write_logs(tmp_path, [0.5] * len(GOODS)), alerts=rules)
    night.run_night(settings, DAYS[0])
    (alert,) = (one for one in manifests(settings)[0].findings if one.state == "firing")
    snoozed = Silence(key=alert.key, at=datetime.now(UTC), until=DAYS[3])
    silence(open_store(settings), snoozed)
    for day in DAYS[1:3]:
        night.run_night(settings, day)
    assert len(slack_server.delivered) == 1
    run_backfill(settings, DAYS[2], DAYS[2], again=True)
    assert manifests(settings)[2].silent
    night.run_night(settings, DAYS[3])
    assert [one["text"][:10] for one in slack_server.delivered[1:]] == ["🔔 Reminder"]


def test_a_silent_night_reads_no_newer_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backfill of a year would read a year of them for each night."""
    settings = dataset(write_logs(tmp_path))
    night.run_night(settings, DAYS[-1])
    monkeypatch.delattr(Runs, "later")
    assert run_backfill(settings, DAYS[0], DAYS[0]).dates("published") == [DAYS[0]]


@pytest.mark.pages
def test_what_is_done_is_kept(tmp_path: Path) -> None:
    """The same command again writes no manifest anew; a new night is added."""
    settings = dataset(write_logs(tmp_path, [*GOODS[:-1], None]))
    run_backfill(settings, DAYS[0], DAYS[-1])
    before = manifests(settings)
    write_logs(tmp_path, [*[None] * 5, GOODS[-1]])
    done = run_backfill(settings, DAYS[0], DAYS[-1])
    assert done.dates("kept") == LOGGED[:-1]
    assert done.dates("published") == LOGGED[-1:]
    assert manifests(settings)[:-1] == before


def test_again_publishes_anew_with_the_same_numbers(tmp_path: Path) -> None:
    """Findings follow from nights that came between: here, one that was missing."""
    settings = dataset(write_logs(tmp_path, [None, *GOODS[1:]]))
    run_backfill(settings, DAYS[0], DAYS[-1])
    before = manifests(settings)
    write_logs(tmp_path, [GOODS[0], *[None] * 5])
    done = run_backfill(settings, DAYS[0], DAYS[-1], again=True)
    assert done.dates("published") == LOGGED
    after = manifests(settings)[1:]
    assert [one.metrics for one in after] == [one.metrics for one in before]
    assert told(after[0]) != told(before[0])
    assert after[0].finished_at > before[0].finished_at


def test_another_judge_makes_another_run_of_each_night(tmp_path: Path) -> None:
    """What a backfill is for: the past as the judge of today sees it."""
    settings = dataset(write_logs(tmp_path))
    run_backfill(settings, DAYS[0], DAYS[-1])
    replies = tmp_path / "none.jsonl"
    replies.write_text("")
    other = dataset(tmp_path, judge=f"recorded:{replies}")
    done = run_backfill(other, DAYS[0], DAYS[-1])
    assert done.dates("failed") == LOGGED  # the recording has no reply
    assert {one.judge.name for one in manifests(settings)} == {f"recorded:{replies}"}
    assert run_backfill(settings, DAYS[0], DAYS[-1]).dates("published") == LOGGED
    assert {one.judge.name for one in manifests(settings)} == {"lexical"}


@pytest.mark.pages
def test_a_night_that_fails_stops_no_other(tmp_path: Path) -> None:
    """It is named with its reason, and done by the same command once the cause is gone."""
    settings = dataset(write_logs(tmp_path))
    folder = tmp_path / "logs" / f"dt={DAYS[1]}"
    moved = folder.rename(tmp_path / "aside")
    folder.write_text("a file where a folder should be")
    done = run_backfill(settings, DAYS[0], DAYS[-1])
    assert done.dates("failed") == [DAYS[1]]
    assert done.dates("published") == [day for day in LOGGED if day != DAYS[1]]
    with pytest.raises(BackfillShort, match=rf"1 of 6 nights .*{DAYS[1]}: .*not a log"):
        done.check()
    folder.unlink()
    moved.rename(folder)
    assert run_backfill(settings, DAYS[0], DAYS[-1]).dates("published") == [DAYS[1]]


def test_a_judge_that_refuses_ends_it_at_once(tmp_path: Path, judge_server: JudgeServer) -> None:
    """A wrong key is wrong for each night: it is not tried hundreds of times."""
    judge_server.faults(api_key="another")
    settings = dataset(write_logs(tmp_path), judge=judge_at(judge_server))
    done = run_backfill(settings, DAYS[0], DAYS[-1], at_once=1)
    assert done.dates("failed") == [DAYS[0]]
    assert done.dates("not begun") == DAYS[1:]
    assert "refused the key" in done.nights[0].reason
    assert manifests(settings) == []
    judge_server.faults(api_key=None)
    assert run_backfill(settings, DAYS[0], DAYS[-1]).dates("published") == LOGGED


def test_a_live_judge_is_asked_nothing_twice(tmp_path: Path, judge_server: JudgeServer) -> None:
    """Nights share their judgements: the same question over the same contexts is judged once."""
    settings = dataset(write_logs(tmp_path), judge=judge_at(judge_server))
    run_backfill(settings, DAYS[0], DAYS[-1], at_once=3)
    stats = judge_server.stats()
    assert stats["requests"] == 30 + 15  # as retrieved on good nights, and on bad ones
    assert max(stats["by_hash"].values()) == 1


def test_nights_whose_batches_are_at_work_are_collected_by_the_same_command(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """All nights are handed in, and none is asked for twice."""
    judge_server.batch_faults(delay_seconds=600)
    judge = judge_at(judge_server, name="openai-batch", poll_seconds=0.05, wait_seconds=3)
    settings = dataset(write_logs(tmp_path), judge=judge)
    done = run_backfill(settings, DAYS[0], DAYS[-1], at_once=6)
    assert done.dates("pending") == LOGGED
    handed_in = judge_server.batch_stats()["steps"]["create"]
    assert manifests(settings) == []
    judge_server.batch_faults(delay_seconds=0)
    done = run_backfill(settings, DAYS[0], DAYS[-1], at_once=6)
    assert done.dates("published") == LOGGED
    assert judge_server.batch_stats()["steps"]["create"] == handed_in


# With steps played by hand


class Played:
    """Steps that do as they are told, and remember the order."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.scores: dict[date, Callable[[], Sequence[RagmetricsError]]] = {}
        self.published: list[date] = []
        self.at_work = self.most = 0
        self._lock = threading.Lock()

    def stage(self, day: date) -> Staged:
        """As in a nightly."""
        return Night(self.settings).stage(day)

    def score(self, staged: Staged) -> Sequence[RagmetricsError]:
        """For real, and then what the test says."""
        with self._lock:
            self.at_work += 1
            self.most = max(self.most, self.at_work)
        errors = Night(self.settings).score(staged)
        told = self.scores.get(staged.ref.date, lambda: errors)()
        with self._lock:
            self.at_work -= 1
        return told

    def publish(self, staged: Staged, problems: Sequence[str], *, silent: bool) -> Manifest:
        """As in a backfill."""
        self.published.append(staged.ref.date)
        return Night(self.settings).publish(staged, problems, silent=silent)

    def alert(self, manifest: Manifest) -> Delivery:
        """As in a nightly."""
        return Night(self.settings).alert(manifest)

    def show(self, manifest: Manifest, *, overview: bool) -> None:
        """As in a backfill."""
        Night(self.settings).show(manifest, overview=overview)


def late() -> Sequence[RagmetricsError]:
    """Scored, and long after the others."""
    time.sleep(1.0)
    return []


def test_several_are_scored_at_once_and_published_in_order(tmp_path: Path) -> None:
    """The first is the slowest; the second and third are scored meanwhile, and wait for it."""
    steps = Played(dataset(write_logs(tmp_path)))
    together = threading.Barrier(3, timeout=60)

    def after_all(then: Callable[[], Sequence[RagmetricsError]]) -> Sequence[RagmetricsError]:
        together.wait()
        return then()

    for day, then in zip(LOGGED[:3], (late, list, list), strict=True):
        steps.scores[day] = partial(after_all, then)
    done = fill(steps.settings, DAYS, steps, at_once=3)
    assert steps.published == done.dates("published") == LOGGED
    assert steps.most == 3


def test_nights_after_one_that_waits_for_its_batches_wait_for_it(tmp_path: Path) -> None:
    """They are scored, so that their batches are at work too; none is published before a night
    that it is compared with. The same command goes on."""
    steps = Played(dataset(write_logs(tmp_path)))
    steps.scores[DAYS[1]] = lambda: [JudgePending("batch b1 is at work")]
    done = fill(steps.settings, DAYS, steps, at_once=2)
    assert done.dates("published") == [DAYS[0]]
    assert done.dates("pending") == LOGGED[1:]
    assert done.dates("no logs") == [DAYS[2]]
    with pytest.raises(BackfillShort, match="batch b1 is at work") as short:
        done.check()
    assert f"{DAYS[3]}: waits until {DAYS[1]} is published" in str(short.value)
    steps.scores.clear()
    steps.published.clear()
    assert fill(steps.settings, DAYS, steps, at_once=2).dates("kept") == [DAYS[0]]
    assert steps.published == LOGGED[1:]


@pytest.mark.pages
def test_a_night_with_a_part_missing_is_published_failed_and_done_anew(tmp_path: Path) -> None:
    """As in a nightly, whatever was scored is shown; the same command finds what is missing."""
    steps = Played(dataset(write_logs(tmp_path)))
    steps.scores[DAYS[0]] = lambda: [StoreError("writing a part: the disk is full")]
    done = fill(steps.settings, DAYS, steps, at_once=2)
    assert done.dates("published") == LOGGED
    assert manifests(steps.settings)[0].problems == ["writing a part: the disk is full"]
    steps.scores.clear()
    steps.published.clear()
    fill(steps.settings, DAYS, steps, at_once=2)
    assert steps.published == [DAYS[0]]
    assert manifests(steps.settings)[0].problems == []


def test_a_bug_is_not_taken_for_a_failed_night(tmp_path: Path) -> None:
    """It is raised."""
    steps = Played(dataset(write_logs(tmp_path)))

    def broken() -> Sequence[RagmetricsError]:
        raise ZeroDivisionError("a bug")

    steps.scores[DAYS[1]] = broken
    with pytest.raises(ZeroDivisionError, match="a bug"):
        fill(steps.settings, DAYS, steps, at_once=2)


# What cannot be begun


@pytest.mark.parametrize(
    ("change", "first", "last", "at_once", "told"),
    [
        ({}, DAYS[1], DAYS[0], 1, "is after the last"),
        ({"logs": "logs/all.jsonl"}, DAYS[0], DAYS[1], 1, "template that contains the day"),
        ({}, DAYS[0], DAYS[1], 0, "should be 1 or more"),
        ({"metrics": ["recall"]}, DAYS[0], DAYS[1], 1, "recall"),
        ({}, DAYS[0], date(9000, 1, 1), 1, "9000-01-01, is in the future; today is 2"),
        ({}, date(1, 1, 1), DAYS[0], 1, r"nights from 0001-01-01 .* at most 3,660 are allowed"),
        ({}, DAYS[0], DAYS[1], 1, r"from 2026-11-10 to 2026-11-11 has a log in .*dt="),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_begun(
    tmp_path: Path, change: dict[str, Any], first: date, last: date, at_once: int, told: str
) -> None:
    """One sentence; nothing is written."""
    settings = dataset(tmp_path, **change)
    with pytest.raises(InputError, match=told):
        run_backfill(settings, first, last, at_once=at_once)
    assert list(tmp_path.iterdir()) == []


def test_one_night_may_have_logs_without_a_date(tmp_path: Path) -> None:
    """It is only several that cannot be told apart."""
    write_jsonl(tmp_path / "all.jsonl", make_rows(10))
    settings = dataset(tmp_path, logs=str(tmp_path / "all.jsonl"))
    assert run_backfill(settings, FIRST, FIRST).dates("published") == [FIRST]


def test_without_a_last_night_it_goes_to_yesterday(tmp_path: Path) -> None:
    """In UTC, as a nightly without a date."""
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    seen: list[date] = []
    with pytest.raises(InputError, match=f"to {yesterday} has a log"):
        run_backfill(
            dataset(tmp_path),
            yesterday - timedelta(days=1),
            tell=lambda one, *_: seen.append(one.date),
        )
    assert seen == [yesterday - timedelta(days=1), yesterday]
    assert not (tmp_path / "store").exists()


def test_many_that_are_left_are_told_in_short() -> None:
    """Twenty of them; the result has all."""
    from ragmetrics.pipeline import PastNight

    left = [PastNight(FIRST + timedelta(days=n), "failed", "why") for n in range(30)]
    with pytest.raises(BackfillShort, match=r"30 of 30 nights .*; and 10 more$"):
        Backfill(tuple(left)).check()


# The command


def write_settings(folder: Path) -> Path:
    """A settings file beside the logs."""
    path = write_logs(folder) / "ragmetrics.yaml"
    path.write_text("metrics: [context_recall]\n")
    return path


@pytest.mark.pages
def test_the_command_tells_what_became_of_the_nights(
    tmp_path: Path, run: Callable[..., Ended]
) -> None:
    """Counts, and the nights without logs."""
    asked = ("backfill", "--settings", write_settings(tmp_path))
    ended = run(*asked, "--first", DAYS[0], "--last", DAYS[-1])
    assert ended.code == 0
    assert ended.out == f"6 nights: 5 published, 1 no logs\nNo logs: {DAYS[2]}\n"
    again = json.loads(run(*asked, "--first", DAYS[0], "--last", DAYS[-1], "--json").out)
    assert [one["outcome"] for one in again["nights"]] == ["kept", "kept", "no logs", *["kept"] * 3]


def test_the_command_says_that_clusters_are_for_the_flow(
    tmp_path: Path, run: Callable[..., Ended]
) -> None:
    """In one line, and does its work here."""
    path = write_settings(tmp_path)
    path.write_text("metrics: [context_recall]\nrunner: {name: dask, address: 'tcp://d:8786'}\n")
    ended = run("backfill", "--settings", path, "--first", DAYS[0], "--last", DAYS[0])
    assert (ended.code, ended.out) == (0, "1 nights: 1 published\n")
    assert ended.err == (
        "runner: dask is used by python -m flows.backfill only: this command scores on this "
        "machine\n"
    )


def test_the_command_can_be_stopped(tmp_path: Path, judge_server: JudgeServer) -> None:
    """By Ctrl-C, at once, whatever the judge is about to answer; the same command goes on, and
    has the judge's limits for itself."""
    judge_server.faults(latency_ms=60_000)
    path = write_settings(tmp_path)
    judge = judge_at(judge_server)
    path.write_text(yaml.safe_dump({"metrics": ["context_recall"], "judge": judge}))
    asked = ["backfill", "--settings", path, "--first", DAYS[0], "--last", DAYS[-1]]
    process = subprocess.Popen(
        [sys.executable, "-m", "ragmetrics", *map(str, asked)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 240
        while not judge_server.stats()["in_flight"]:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=240)
    finally:
        process.kill()
    assert (process.returncode, err) == (130, "Stopped. The same command continues\n")
    assert list((tmp_path / "ragmetrics-store/workers").rglob("*.json")) == []


def test_a_range_without_any_log_is_exit_code_2(tmp_path: Path, run: Callable[..., Ended]) -> None:
    """No data is never green: one sentence names the place."""
    path = write_settings(tmp_path)
    ended = run("backfill", "--settings", path, "--first", DAYS[2], "--last", DAYS[2])
    assert (ended.code, ended.out) == (2, "")
    assert f"has a log in {tmp_path}/logs/dt={{date}}\n" in ended.err


def test_the_command_fails_where_nights_are_left(tmp_path: Path, run: Callable[..., Ended]) -> None:
    """Exit code 1 and their names on stderr; 2 for what cannot be read."""
    path = write_settings(tmp_path)
    (tmp_path / "logs" / f"dt={DAYS[2]}").write_text("a file where a folder should be")
    ended = run("backfill", "--settings", path, "--first", DAYS[0], "--last", DAYS[-1])
    assert ended.code == 1
    assert f"{DAYS[2]}: " in ended.err
    assert "5 published, 1 failed" in ended.out
    ended = run("backfill", "--settings", path, "--first", DAYS[2], "--last", DAYS[2], "--json")
    assert (ended.code, json.loads(ended.out)["nights"][0]["outcome"]) == (1, "failed")
    ended = run("backfill", "--settings", path, "--first", "yesterday")
    assert (ended.code, ended.out) == (2, "")
    assert "should be a date like 2026-11-19" in ended.err
