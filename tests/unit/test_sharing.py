"""Shared limits: processes that ask one endpoint share what it allows, by signs in their store."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragmetrics import evaluate
from ragmetrics.judges import sharing
from ragmetrics.judges.gate import Bucket, Gate
from ragmetrics.judges.pace import Pace
from ragmetrics.judges.sharing import Presence, Share, join
from ragmetrics.store.files import Files
from tests.fakes.clients import Bucket as S3Bucket
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import make_rows
from tests.fakes.processes import ROOT

ENDPOINT = ("http://llm.example.com/v1/", "judge", "sk-very-secret")
FOLDER = "workers/judge=0123456789abcdef"
WHOLE = Share()


@given(ceiling=st.integers(1, 1_000), of=st.integers(1, 50))
def test_shares_add_up_to_the_ceiling(ceiling: int, of: int) -> None:
    """Nothing is lost in rounding, and each has a place, however many they are."""
    places = [Share(place, of).places(ceiling) for place in range(of)]
    assert min(places) >= 1
    assert max(places) - min(places) <= 1
    assert sum(places) == max(ceiling, of)


@given(per_minute=st.integers(1, 10_000), of=st.integers(1, 50))
def test_shares_of_an_allowance_are_equal(per_minute: int, of: int) -> None:
    """The allowance of a minute is divided, not counted."""
    rates = [Share(place, of).rate(per_minute) for place in range(of)]
    assert sum(rates) == pytest.approx(per_minute)
    assert len(set(rates)) == 1


def test_a_newcomer_takes_little() -> None:
    """A sixteenth of its part, or one place: many that come at once are little too."""
    assert Share(1, 2, settled=False).places(128) == 4
    assert Share(1, 2, settled=False).places(12) == 1
    assert Share(1, 2, settled=False).rate(1_600) == 50
    assert sum(Share(n - 1, n, settled=False).places(1_600) for n in range(2, 17)) < 1_600 / 6


class Watched:
    """A gate that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[Share | None] = []

    def share(self, of: object, share: Share | None) -> None:
        """Remember."""
        if share != self.now:
            self.told.append(share)

    @property
    def now(self) -> Share | None:
        """What it was told last."""
        return self.told[-1] if self.told else None


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty times as fast as in life; signs are void as late as ever, by the store's times."""
    for name in ("LOOK_SECONDS", "GRACE_SECONDS", "LINGER_SECONDS"):
        monkeypatch.setattr(sharing, name, getattr(sharing, name) / 20)


def appear(files: Files) -> tuple[Presence, Watched]:
    """One more process, as far as its signs tell."""
    gate = Watched()
    presence = Presence(files, FOLDER, lambda: None)
    presence.join(gate)
    return presence, gate


async def until(what: Callable[[], bool]) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(30):
        while not what():
            await asyncio.sleep(0.005)


def signs(folder: Path) -> list[Path]:
    """All signs in a store."""
    return sorted((folder / "workers").rglob("*.json"))


@pytest.mark.usefixtures("quick")
def test_alone_a_process_has_all_of_it(tmp_path: Path) -> None:
    """After the first look; until then, as little as any newcomer."""

    async def main() -> None:
        presence, gate = appear(Files(str(tmp_path)))
        await until(lambda: gate.now == WHOLE)
        assert gate.told == [Share(settled=False), WHOLE]
        await presence.depart()

    asyncio.run(main())


@pytest.mark.usefixtures("quick")
def test_two_have_half_each_and_the_newcomer_waits_for_the_other(tmp_path: Path) -> None:
    """Whoever was there before gives way at its next look, and only then is its half taken."""

    async def main() -> None:
        first, elder = appear(Files(str(tmp_path)))
        await until(lambda: elder.now == WHOLE)
        second, newcomer = appear(Files(str(tmp_path)))
        together = 0
        while newcomer.now is None or not newcomer.now.settled:
            assert elder.now and newcomer.now
            together = max(together, elder.now.places(12) + newcomer.now.places(12))
            await asyncio.sleep(0.002)
        assert together == 13
        assert elder.now and elder.now.of == newcomer.now.of == 2
        assert {elder.now.place, newcomer.now.place} == {0, 1}
        await first.depart()
        await second.depart()

    asyncio.run(main())


@pytest.mark.usefixtures("quick")
def test_what_one_leaves_the_other_takes(tmp_path: Path) -> None:
    """A process that departs removes its sign; the other has all of it at its next look."""

    async def main() -> None:
        first, gate = appear(Files(str(tmp_path)))
        second, other = appear(Files(str(tmp_path)))
        await until(lambda: other.now is not None and other.now.of == 2 and other.now.settled)
        await first.depart()
        assert gate.now is None
        assert len(signs(tmp_path)) == 1
        await until(lambda: other.now == WHOLE)
        await second.depart()
        assert signs(tmp_path) == []

    asyncio.run(main())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("seconds", [-31, 31])
def test_a_sign_that_nobody_renews_is_void(tmp_path: Path, seconds: float) -> None:
    """Killed with -9, say. Told by the times of the store: a sign from the future is as dead."""

    async def main() -> None:
        dead = tmp_path / FOLDER / "dead.json"
        dead.parent.mkdir(parents=True)
        dead.write_text("{}")
        presence, gate = appear(Files(str(tmp_path)))
        await until(lambda: gate.now is not None and gate.now.of == 2)
        os.utime(dead, (time.time() + seconds,) * 2)
        await until(lambda: gate.now == WHOLE)
        assert dead.exists()
        os.utime(dead, (time.time() + 10 * seconds,) * 2)
        await until(lambda: not dead.exists())
        await presence.depart()

    asyncio.run(main())


@pytest.mark.usefixtures("quick")
def test_a_store_that_cannot_be_written_costs_nothing_but_the_sharing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning, and the process goes on as if it were alone."""
    (tmp_path / "workers").write_text("a file in the way")

    async def main() -> None:
        presence, gate = appear(Files(str(tmp_path)))
        await until(lambda: gate.now == WHOLE)
        await asyncio.sleep(0.5)
        await presence.depart()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    (told,) = [one.getMessage() for one in caplog.records]
    assert told.startswith("limits of the judge are not shared for now")


@pytest.mark.usefixtures("quick")
def test_a_store_that_fails_later_leaves_the_share_as_it_was(tmp_path: Path) -> None:
    """Nobody takes more because a look did not come off; well again, it is as before."""

    async def main() -> None:
        first, gate = appear(Files(str(tmp_path)))
        second, other = appear(Files(str(tmp_path)))
        await until(lambda: bool(gate.now and other.now and gate.now.settled and other.now.settled))
        halves = [gate.now, other.now]
        assert {one.of for one in halves if one} == {2}
        (tmp_path / "workers").rename(tmp_path / "moved")  # at once: they write all the time
        (tmp_path / "workers").write_text("a file in the way")
        gate.told.clear()
        other.told.clear()
        await asyncio.sleep(0.5)
        assert (gate.told, other.told) == ([], [])
        (tmp_path / "workers").unlink()
        await until(lambda: len(signs(tmp_path)) == 2)
        await first.depart()
        await until(lambda: other.now == WHOLE)
        await second.depart()

    asyncio.run(main())


def test_signs_in_a_bucket(s3: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bucket's own times count there."""
    for name in ("LOOK_SECONDS", "GRACE_SECONDS"):
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

    asyncio.run(main())


@pytest.mark.usefixtures("quick")
def test_between_two_parts_a_process_stays(tmp_path: Path) -> None:
    """It would be a newcomer at each of them; after a while without any it goes."""

    async def main() -> None:
        gate = Watched()
        presence = join(Files(str(tmp_path)), ENDPOINT, gate)
        await until(lambda: gate.now == WHOLE)
        presence.leave(gate)
        assert join(Files(str(tmp_path)), ENDPOINT, gate) is presence
        await asyncio.sleep(2 * sharing.LINGER_SECONDS)
        assert len(signs(tmp_path)) == 1
        presence.leave(gate)
        await until(lambda: signs(tmp_path) == [])
        assert join(Files(str(tmp_path)), ENDPOINT, gate) is not presence

    asyncio.run(main())


def test_limits_belong_to_address_model_and_key(tmp_path: Path) -> None:
    """Another of them is another limit; the name of the sign gives none of them away."""

    async def main() -> None:
        gate = Watched()
        for endpoint in (ENDPOINT, ("http://other/", *ENDPOINT[1:]), (*ENDPOINT[:2], "sk-other")):
            join(Files(str(tmp_path)), endpoint, gate)
        await until(lambda: len(signs(tmp_path)) == 3)
        assert len({sign.parent for sign in signs(tmp_path)}) == 3
        for sign in signs(tmp_path):
            for secret in ("llm.example", "sk-", "other"):
                assert secret not in str(sign.relative_to(tmp_path)) + sign.read_text()

    asyncio.run(main())


# What the gate makes of it


def test_a_gate_lets_in_no_more_than_its_share() -> None:
    """Requests under way are not called back; what comes after them keeps to the share."""

    async def main() -> None:
        gate = Gate(12)
        sent = [await gate.enter(0) for _ in range(12)]
        gate.share("store", Share(0, 2))
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

    asyncio.run(main())


def test_of_several_stores_the_smallest_share_counts() -> None:
    """One process may work for two stores at once, and the endpoint is one."""

    async def main() -> None:
        gate = Gate(12)
        gate.share("one", Share(0, 3))
        gate.share("other", Share(0, 2))
        assert gate.pace.limit == 4
        gate.share("one", None)
        assert gate.pace.limit == 6

    asyncio.run(main())


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
        gate = Gate(64, requests_per_minute=600)
        gate.share("store", Share(1, 2, settled=False))
        assert gate.pace.limit == 2
        await gate.enter(0)
        waiting = asyncio.ensure_future(gate.enter(0))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        gate.share("store", WHOLE)
        await asyncio.wait_for(waiting, 10)

    asyncio.run(main())


def test_a_limit_that_was_found_out_comes_back_with_the_ceiling() -> None:
    """One that the ceiling cut; not one at which there was trouble."""
    pace = Pace(64)
    assert pace.limit == 16
    pace.bound(8)
    assert pace.limit == 8
    pace.bound(64)
    assert pace.limit == 16
    pace.bound(8)
    for number in range(50):
        pace.sent(number / 100, 8)
    for number in range(50):
        pace.refused(1 + number / 100, number / 100)
    pace.bound(64)
    assert pace.limit < 8


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
from ragmetrics import loop
from ragmetrics.judges.gate import Gate
from ragmetrics.judges.sharing import join
from ragmetrics.store.files import Files

async def main():
    gate = Gate(12)
    join(Files(sys.argv[1]), ("address", "model", "key"), gate)
    while gate.pace.limit < 12:
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
