"""Shared limits: processes that ask one endpoint share what it allows, by signs in their store."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics import evaluate
from ragmetrics.judges import quota_sharing as sharing
from ragmetrics.judges.quota_sharing import Heartbeat, QuotaShare, join_quota
from ragmetrics.judges.rate_limiter import Bucket, RateLimiter
from ragmetrics.storage import Files
from tests.fakes.clients import Bucket as S3Bucket, JudgeServer
from tests.fakes.instant import InstantLoop, instantly
from tests.fakes.logs import make_rows
from tests.fakes.processes import ROOT

ENDPOINT = ("http://llm.example.com/v1/", "judge", "sk-very-secret")
FOLDER = "workers/judge=0123456789abcdef"
WHOLE = QuotaShare()


@given(ceiling=st.integers(1, 1_000), of=st.integers(1, 50))
def test_shares_add_up_to_the_ceiling(ceiling: int, of: int) -> None:
    """Nothing is lost in rounding, and each has a place, however many they are."""
    places = [QuotaShare(place, of).places(ceiling) for place in range(of)]
    assert min(places) >= 1
    assert max(places) - min(places) <= 1
    assert sum(places) == max(ceiling, of)


@given(per_minute=st.integers(1, 10_000), of=st.integers(1, 50))
def test_shares_of_an_allowance_are_equal(per_minute: int, of: int) -> None:
    """The allowance of a minute is divided, not counted."""
    rates = [QuotaShare(place, of).rate(per_minute) for place in range(of)]
    assert sum(rates) == pytest.approx(per_minute)
    assert len(set(rates)) == 1


def test_a_newcomer_takes_little() -> None:
    """A sixteenth of its part, or one place: many that come at once are little too."""
    assert QuotaShare(1, 2, settled=False).places(128) == 4
    assert QuotaShare(1, 2, settled=False).places(12) == 1
    assert QuotaShare(1, 2, settled=False).rate(1_600) == 50
    assert sum(QuotaShare(n - 1, n, settled=False).places(1_600) for n in range(2, 17)) < 1_600 / 6


class Watched:
    """A gate that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[QuotaShare | None] = []
        self.now: QuotaShare | None = None

    def share(self, of: object, share: QuotaShare | None) -> None:
        """Remember what is new."""
        if share != self.now:
            self.told.append(share)
        self.now = share


class Folder(Files):
    """A store in a folder, with the loop's clock for its own."""

    def write(self, path: str, data: bytes) -> None:
        """As ever, at the time of the loop."""
        super().write(path, data)
        stamp(Path(self.root) / path, now())


def now() -> float:
    """The time of the loop."""
    return asyncio.get_running_loop().time()


def stamp(sign: Path, moment: float) -> None:
    """Let a sign have been written at that moment."""
    os.utime(sign, (moment, moment))


def appear(files: Files) -> tuple[Heartbeat, Watched]:
    """One more process, as far as its signs tell."""
    gate = Watched()
    presence = Heartbeat(files, FOLDER, lambda: None)
    presence.join(gate)
    return presence, gate


async def until(what: Callable[[], bool]) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(60):
        while not what():
            await asyncio.sleep(0.01)


def signs(folder: Path) -> list[Path]:
    """All signs in a store."""
    return sorted((folder / "workers").rglob("*.json"))


def test_alone_a_process_has_all_of_it(tmp_path: Path) -> None:
    """After the first look; until then, as little as any newcomer."""

    async def main() -> None:
        presence, gate = appear(Folder(str(tmp_path)))
        await until(lambda: gate.now == WHOLE)
        assert gate.told == [QuotaShare(settled=False), WHOLE]
        await presence.depart()

    instantly(main())


@pytest.mark.parametrize("later", [0.0, 0.4, 2.5, 4.9])
def test_two_have_half_each_and_the_newcomer_waits_for_the_other(
    tmp_path: Path, later: float
) -> None:
    """Whoever was there before gives way at its next look, and only then is its half taken:
    whenever it comes between two looks, its one place is all that there is too much."""

    async def main() -> None:
        _, elder = appear(Folder(str(tmp_path)))
        await asyncio.sleep(later)
        _, newcomer = appear(Folder(str(tmp_path)))
        assert await most_until_settled(elder, newcomer) == 13
        assert [gate.now and gate.now.of for gate in (elder, newcomer)] == [2, 2]
        assert {gate.now and gate.now.place for gate in (elder, newcomer)} == {0, 1}

    instantly(main())


def test_three_that_begin_at_once_have_a_third_each(tmp_path: Path) -> None:
    """One of them may see nobody else at first; the others wait for it with one place each."""

    async def main() -> None:
        gates = [appear(Folder(str(tmp_path)))[1] for _ in range(3)]
        assert await most_until_settled(*gates) == 14
        assert [gate.now and gate.now.places(12) for gate in gates] == [4, 4, 4]

    instantly(main())


async def most_until_settled(*gates: Watched) -> int:
    """The most places of a dozen that all had together before each had its part."""
    most = 0
    while not all(gate.now and gate.now.settled for gate in gates):
        await asyncio.sleep(0.01)
        most = max(most, sum(gate.now.places(12) for gate in gates if gate.now))
    return most


def test_what_one_leaves_the_other_takes(tmp_path: Path) -> None:
    """A process that departs removes its sign; the other has all of it at its next look."""

    async def main() -> None:
        first, gate = appear(Folder(str(tmp_path)))
        second, other = appear(Folder(str(tmp_path)))
        await until(lambda: other.now is not None and other.now.of == 2 and other.now.settled)
        await first.depart()
        assert gate.now is None
        assert len(signs(tmp_path)) == 1
        await until(lambda: other.now == WHOLE)
        await second.depart()
        assert signs(tmp_path) == []

    instantly(main())


def test_the_dead_leave_their_part_when_their_sign_is_void(tmp_path: Path) -> None:
    """Killed with -9, say: within 40 s the other has it, and not before 30 s are over."""

    async def main() -> None:
        files = Folder(str(tmp_path))
        files.write(f"{FOLDER}/dead.json", b"{}")
        _, gate = appear(files)
        await until(lambda: gate.now == WHOLE)
        assert (
            sharing.EXPIRY_SECONDS < now() <= sharing.EXPIRY_SECONDS + 2 * sharing.REFRESH_SECONDS
        )

    instantly(main())


@pytest.mark.parametrize("seconds", [-31, 36])
def test_a_sign_that_nobody_renews_is_void(tmp_path: Path, seconds: float) -> None:
    """Told by the times of the store: a sign from the future is as dead. Long void, it goes."""

    async def main() -> None:
        files, dead = Folder(str(tmp_path)), tmp_path / FOLDER / "dead.json"
        files.write(f"{FOLDER}/dead.json", b"{}")
        _, gate = appear(files)
        await until(lambda: gate.now is not None and gate.now.of == 2)
        stamp(dead, now() + seconds)
        await until(lambda: gate.now == WHOLE)
        assert dead.exists()
        stamp(dead, now() + 10 * seconds)
        await until(lambda: not dead.exists())

    instantly(main())


def test_a_store_that_cannot_be_written_costs_nothing_but_the_sharing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning, and the process goes on as if it were alone."""
    (tmp_path / "workers").write_text("a file in the way")

    async def main() -> None:
        presence, gate = appear(Folder(str(tmp_path)))
        await until(lambda: gate.now == WHOLE)
        await asyncio.sleep(60)
        await presence.depart()

    with caplog.at_level(logging.WARNING):
        instantly(main())
    (told,) = [one.getMessage() for one in caplog.records]
    assert told.startswith("sharing the judge's limits fails")


def test_a_store_that_fails_later_leaves_the_share_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody takes more because a look did not come off; well again, it is as before. Each time
    that it fails is told, once."""

    async def main() -> None:
        first, gate, other = await halves(tmp_path)
        for outage in (1, 2):
            (tmp_path / "workers").rename(tmp_path / "moved")
            (tmp_path / "workers").write_text("a file in the way")
            await asyncio.sleep(15)
            assert (gate.told, other.told) == ([], [])
            (tmp_path / "workers").unlink()
            (tmp_path / "moved").rename(tmp_path / "workers")
            await asyncio.sleep(10)
            assert (gate.told, other.told) == ([], [])
            assert caplog.text.count("sharing the judge's limits fails") == 2 * outage
        await first.depart()
        await until(lambda: other.now == WHOLE)

    instantly(main())


def test_an_error_that_nobody_foresaw_ends_no_sharing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a library, say: it is told with its traceback, the share stays, and the next look
    follows. A process that looked no more would keep its half for ever, and lose it to others."""

    def fail(*_: object) -> None:
        raise RuntimeError("Loop is not running")

    async def main() -> None:
        first, gate, other = await halves(tmp_path)
        with monkeypatch.context() as broken:
            broken.setattr(Folder, "below", fail)
            await asyncio.sleep(15)
        assert (gate.told, other.told) == ([], [])
        await first.depart()
        await until(lambda: other.now == WHOLE)

    instantly(main())
    for told in caplog.records:
        assert "of this process stays: RuntimeError('Loop is not running')" in told.getMessage()
        assert told.exc_info
    assert len(caplog.records) == 2


def test_a_process_that_ends_tells_nothing_of_looks_that_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its sign is gone, and no thread is begun any more."""

    def fail(*_: object) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    async def main() -> None:
        presence, gate = appear(Folder(str(tmp_path)))
        await until(lambda: gate.now == WHOLE)
        presence.withdraw()
        with monkeypatch.context() as ending:
            ending.setattr(InstantLoop, "run_in_executor", fail)
            await asyncio.sleep(10)

    instantly(main())
    assert caplog.records == []


@pytest.mark.parametrize("delay", [0.0, 9.9], ids=["at a look", "at the end"])
def test_an_interpreter_that_ends_leaves_no_error_behind(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    delay: float,
) -> None:
    """Its threads end before this loop does: the sign is then removed by the exit hook alone."""
    complaints: list[Any] = []

    def fail(*_: object) -> None:
        raise RuntimeError("cannot schedule new futures after shutdown")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))
        presence, gate = appear(Folder(str(tmp_path)))
        await until(lambda: gate.now == WHOLE)
        presence.leave(gate)
        await asyncio.sleep(delay)
        with monkeypatch.context() as ending:
            ending.setattr(InstantLoop, "run_in_executor", fail)
            await asyncio.sleep(30)
        assert signs(tmp_path)
        presence.withdraw()
        assert not signs(tmp_path)
        del presence

    instantly(main())
    gc.collect()
    assert not complaints and caplog.records == []


async def halves(folder: Path) -> tuple[Heartbeat, Watched, Watched]:
    """Two processes that have half each, the first of them, and what is told them from now on."""
    (first, gate), (_, other) = appear(Folder(str(folder))), appear(Folder(str(folder)))
    await until(lambda: bool(gate.now and other.now and gate.now.settled and other.now.settled))
    assert [one.now and one.now.of for one in (gate, other)] == [2, 2]
    gate.told.clear()
    other.told.clear()
    return first, gate, other


def test_signs_in_a_bucket(s3: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bucket's own times count there."""
    for name in ("REFRESH_SECONDS", "GRACE_SECONDS"):
        monkeypatch.setattr(sharing, name, 0.2)

    async def main() -> None:
        first, gate = appear(Files(s3.uri))
        second, other = appear(Files(s3.uri))
        await until(lambda: bool(gate.now and other.now and gate.now.settled and other.now.settled))
        assert len(s3.keys("workers/")) == 2
        await first.depart()
        await until(lambda: other.now == WHOLE)
        await second.depart()
        assert s3.keys("workers/") == []

    instantly(main())


def test_between_two_parts_a_process_stays(tmp_path: Path) -> None:
    """It would be a newcomer at each of them; after a while without any it goes."""

    async def main() -> None:
        gate = Watched()
        presence = join_quota(Files(str(tmp_path)), ENDPOINT, gate)
        await until(lambda: gate.now == WHOLE)
        presence.leave(gate)
        assert join_quota(Files(str(tmp_path)), ENDPOINT, gate) is presence
        await asyncio.sleep(2 * sharing.LINGER_SECONDS)
        assert len(signs(tmp_path)) == 1
        presence.leave(gate)
        await until(lambda: signs(tmp_path) == [])
        assert join_quota(Files(str(tmp_path)), ENDPOINT, gate) is not presence

    instantly(main())


def test_limits_belong_to_address_model_and_key(tmp_path: Path) -> None:
    """Another of them is another limit; the name of the sign gives none of them away."""

    async def main() -> None:
        gate = Watched()
        for endpoint in (ENDPOINT, ("http://other/", *ENDPOINT[1:]), (*ENDPOINT[:2], "sk-other")):
            join_quota(Files(str(tmp_path)), endpoint, gate)
        await until(lambda: len(signs(tmp_path)) == 3)
        assert len({sign.parent for sign in signs(tmp_path)}) == 3
        for sign in signs(tmp_path):
            for secret in ("llm.example", "sk-", "other"):
                assert secret not in str(sign.relative_to(tmp_path)) + sign.read_text()

    instantly(main())


# What the gate makes of it


def test_a_gate_lets_in_no_more_than_its_share() -> None:
    """Requests under way are not called back; what comes after them keeps to the share."""

    async def main() -> None:
        gate = RateLimiter(12)
        sent = [await gate.enter(0) for _ in range(12)]
        gate.share("store", QuotaShare(0, 2))
        waiting = [asyncio.ensure_future(gate.enter(0)) for _ in range(4)]
        for moment in sent[:6]:
            gate.answered(moment, "grade")
        await asyncio.sleep(0)
        assert not any(one.done() for one in waiting)
        gate.answered(sent[6], "grade")
        await asyncio.sleep(0)
        assert [one.done() for one in waiting] == [True, False, False, False]
        gate.share("store", None)
        await asyncio.sleep(0)
        assert all(one.done() for one in waiting)

    instantly(main())


def test_of_several_stores_the_smallest_share_counts() -> None:
    """One process may work for two stores at once, and the endpoint is one."""

    async def main() -> None:
        gate = RateLimiter(12)
        gate.share("one", QuotaShare(0, 3))
        gate.share("other", QuotaShare(0, 2))
        assert gate.concurrency.limit == 4
        gate.share("one", None)
        assert gate.concurrency.limit == 6

    instantly(main())


def test_an_allowance_is_taken_up_at_its_new_pace() -> None:
    """What is owed is paid at the pace of the share too."""
    bucket = Bucket(60)
    for _ in range(11):
        bucket.take(1, now=0)
    assert bucket.delay(0) == 10
    bucket.fill(30, now=0)
    assert bucket.delay(0) == pytest.approx(21)
    bucket.fill(60, now=2)
    assert bucket.delay(2) == pytest.approx(9)


def test_who_waits_for_the_allowance_hears_of_a_larger_share() -> None:
    """A newcomer's wait of a minute ends when it is told that it is alone."""

    async def main() -> None:
        gate = RateLimiter(64, requests_per_minute=600, clock=now)
        gate.share("store", QuotaShare(1, 2, settled=False))
        assert gate.concurrency.limit == 2
        await gate.enter(0)
        waiting = asyncio.ensure_future(gate.enter(0))
        await asyncio.sleep(2)
        assert not waiting.done()
        gate.share("store", WHOLE)
        await asyncio.sleep(0.1)
        assert waiting.done()

    instantly(main())


def test_two_ask_as_often_in_a_minute_as_one_alone_may(tmp_path: Path) -> None:
    """From the newcomer's first request on; and once it has its half, not less often either."""

    async def ask(gate: RateLimiter, asked: list[float]) -> None:
        while True:
            asked.append(await gate.enter(0))
            await asyncio.sleep(0.1)
            gate.answered(asked[-1], "grade")

    async def main() -> list[float]:
        asked: list[float] = []
        for _ in range(2):
            gate = RateLimiter(64, requests_per_minute=1_200, clock=now)
            Heartbeat(Folder(str(tmp_path)), FOLDER, lambda: None).join(gate)
            askers = [asyncio.ensure_future(ask(gate, asked)) for _ in range(16)]
            await asyncio.sleep(80.5)
            assert not any(one.done() for one in askers)
        return asked

    in_second = Counter(int(moment) for moment in instantly(main()))
    assert max(in_second[second] for second in range(1, 161)) <= 21  # what bursts, does at first
    assert sum(in_second[second] for second in range(101, 161)) == pytest.approx(1_200, abs=1)


# Runs


def test_a_run_leaves_no_sign(tmp_path: Path, judge_server: JudgeServer) -> None:
    """It was there while the judge was asked, and goes with the run."""
    judge: dict[str, Any] = {"name": "openai", "base_url": judge_server.base_url}
    evaluate(make_rows(5), ["context_recall"], judge=judge, store=str(tmp_path))
    assert judge_server.stats()["requests"] == 5
    assert (tmp_path / "workers").is_dir()
    assert signs(tmp_path) == []


def test_a_run_that_asks_nothing_takes_no_part(tmp_path: Path, judge_server: JudgeServer) -> None:
    """All of it is in the store: others keep their share."""
    judge: dict[str, Any] = {"name": "openai", "base_url": judge_server.base_url}
    for _ in range(2):
        evaluate(make_rows(5), ["context_recall"], judge=judge, store=str(tmp_path))
        shutil.rmtree(tmp_path / "workers", ignore_errors=True)
    evaluate(make_rows(5), ["context_recall"], judge=judge, store=str(tmp_path))
    assert not (tmp_path / "workers").exists()


ENDS = """
import asyncio, sys, time
from ragmetrics import event_loop as loop
from ragmetrics.judges.rate_limiter import RateLimiter
from ragmetrics.judges.quota_sharing import join_quota
from ragmetrics.storage.files import Files

async def main():
    gate = RateLimiter(12)
    join_quota(Files(sys.argv[1]), ("address", "model", "key"), gate)
    while gate.concurrency.limit < 12:
        await asyncio.sleep(0.01)

loop.run(main())
"""


def test_a_process_that_ends_takes_its_sign_along(tmp_path: Path, s3: S3Bucket) -> None:
    """Whatever it was doing: the next run has all of it at once, in a folder and in a bucket."""
    for place in (str(tmp_path), s3.uri):
        subprocess.run([sys.executable, "-c", ENDS, place], cwd=ROOT, timeout=60, check=True)
    assert (tmp_path / "workers").is_dir()
    assert signs(tmp_path) == []
    assert s3.keys("workers/") == []
