"""The one event loop: what runs on it, what interrupts it, and what is shared there."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from ragmetrics.http import PerLoop, run_coroutine
from tests.fakes.processes import ROOT


async def thread() -> int:
    """The thread that it runs in."""
    return threading.get_ident()


def test_all_threads_share_one_loop() -> None:
    """Whoever runs something, it runs beside what others run."""
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(run_coroutine(thread()))) for _ in range(4)
    ]
    for started in threads:
        started.start()
    for started in threads:
        started.join()
    assert set(found) == {run_coroutine(thread())}
    assert found[0] != threading.get_ident()


def test_what_the_work_raises_comes_up() -> None:
    """Unchanged."""

    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        run_coroutine(fail())


def test_it_may_be_used_under_another_loop() -> None:
    """As in a notebook's cell, or a Prefect flow that is a coroutine."""

    async def cell() -> int:
        return run_coroutine(thread())

    assert asyncio.run(cell()) != threading.get_ident()


def test_running_from_the_loop_itself_is_an_error_and_no_deadlock() -> None:
    """It would wait for itself for ever."""

    async def nested() -> int:
        return run_coroutine(thread())

    with pytest.raises(RuntimeError, match="is awaited, not run"):
        run_coroutine(nested())


INTERRUPTED = """
import asyncio
from ragmetrics.http import PerLoop, run_coroutine

async def work():
    try:
        print("at work", flush=True)
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.05)
        print("in order", flush=True)

try:
    run_coroutine(work())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.process
def test_ctrl_c_ends_the_work_and_lets_it_put_things_in_order() -> None:
    """Before the one who waited goes on, and perhaps ends the process."""
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=-1, cwd=ROOT) as process:
        assert process.stdout
        assert process.stdout.readline() == b"at work\n"
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=240)
    assert (told, process.returncode) == (b"in order\ninterrupted\n", 0)


LEFT_BEHIND = """
import asyncio, atexit, threading

def threads():
    print([one.name for one in threading.enumerate() if one.name == "ragmetrics"], flush=True)

atexit.register(threads)  # what is registered last runs first
from ragmetrics.http import PerLoop, run_coroutine

kept = []

async def linger():
    try:
        await asyncio.sleep(60)
    finally:
        print("cancelled", flush=True)

async def begin():
    kept.append(asyncio.ensure_future(linger()))
    await asyncio.sleep(0.01)

run_coroutine(begin())
threads()
"""


@pytest.mark.process
def test_the_loop_ends_before_the_interpreter() -> None:
    """With what is left on it: native code in a thread of a dying interpreter can crash it."""
    ended = subprocess.run(
        [sys.executable, "-c", LEFT_BEHIND], capture_output=True, cwd=ROOT, timeout=240, check=False
    )
    assert ended.stdout.decode().splitlines() == ["['ragmetrics']", "cancelled", "[]"]
    assert (ended.returncode, ended.stderr) == (0, b"")


FORKED = """
import asyncio, multiprocessing, threading
from ragmetrics.http import PerLoop, run_coroutine

async def close(thing):
    print(f"{thing} closed", flush=True)

shared = PerLoop(close)
held, done = threading.Event(), threading.Event()

async def hold():
    async with shared.hold("key", lambda: "the parent's"):
        held.set()
        await asyncio.to_thread(done.wait)

async def own():
    async with shared.hold("key", lambda: "the child's"):
        pass

holder = threading.Thread(target=lambda: run_coroutine(hold()))
holder.start()
held.wait()
child = multiprocessing.get_context("fork").Process(target=lambda: run_coroutine(own()))
child.start()
child.join(200)
print(child.exitcode, flush=True)
done.set()
holder.join()
"""


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_a_loop_and_things_of_its_own() -> None:
    """Threads do not come along, and a connection belongs to the parent."""
    ended = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, cwd=ROOT, timeout=240, check=False
    )
    told = ["the child's closed", "0", "the parent's closed"]
    assert ended.stdout.decode().splitlines() == told, ended.stderr


# Shared


@dataclass
class Things:
    """Makes and closes things, and tells."""

    told: list[str] = field(default_factory=list)
    fails: str = ""

    def make(self) -> str:
        """A thing."""
        self.told.append("made")
        if self.fails == "make":
            raise ValueError("cannot be made")
        return "thing"

    async def close(self, thing: str) -> None:
        """Close it, which takes a while."""
        await asyncio.sleep(0)
        self.told.append("closed")
        if self.fails == "close":
            raise ValueError("cannot be closed")


def held(things: Things, *holders: Callable[[PerLoop[str], str], Awaitable[None]]) -> None:
    """Let all of them work at the same time."""

    async def main() -> None:
        shared = PerLoop(things.close)
        await asyncio.gather(*(holder(shared, "key") for holder in holders))

    asyncio.run(main())


async def a_while(shared: PerLoop[str], things: Things, turns: int) -> None:
    """Hold the thing for some turns of the loop."""
    async with shared.hold("key", things.make) as thing:
        for _ in range(turns):
            await asyncio.sleep(0)
        things.told.append(f"used {thing}")


def test_a_thing_is_made_for_the_first_and_closed_after_the_last() -> None:
    """Two who enter at once get the same."""
    things = Things()
    held(things, *[lambda shared, key: a_while(shared, things, 3)] * 3)
    assert things.told == ["made", *["used thing"] * 3, "closed"]


def test_the_loop_goes_on_while_a_thing_is_made() -> None:
    """And one who gives up waiting for it leaves nothing open."""
    things = Things()
    shared = PerLoop(things.close)
    began, go_on = threading.Event(), threading.Event()

    def slowly() -> str:
        began.set()
        assert go_on.wait(60)
        return things.make()

    async def hold() -> None:
        async with shared.hold("key", slowly):
            things.told.append("used")

    async def main() -> None:
        task = asyncio.create_task(hold())
        while not began.is_set():
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert things.told == ["made", "closed"]


def test_who_comes_after_the_last_gets_a_new_one() -> None:
    """While the old one is being closed, too."""
    things = Things()
    shared = PerLoop(things.close)

    async def main() -> None:
        first = asyncio.create_task(a_while(shared, things, 1))
        while "used thing" not in things.told:
            await asyncio.sleep(0)
        await asyncio.gather(first, a_while(shared, things, 1))

    asyncio.run(main())
    assert things.told.count("made") == things.told.count("closed") == 2


def test_what_is_kept_stays_open_from_one_holder_to_the_next() -> None:
    """It is closed when nobody keeps and nobody holds it; a holder's own never waits."""
    things = Things()
    shared = PerLoop(things.close)

    async def main() -> None:
        async with shared.hold("key", things.make):
            async with shared.keep():
                await a_while(shared, things, 1)
            things.told.append("held")
        async with shared.keep():
            await a_while(shared, things, 1)
            async with shared.hold(None, things.make):
                pass
            things.told.append("kept")
            await a_while(shared, things, 1)

    asyncio.run(main())
    assert things.told == [
        *("made", "used thing", "held", "closed"),
        *("made", "used thing", "made", "closed", "kept", "used thing", "closed"),
    ]


def test_all_that_was_kept_is_closed_where_one_cannot_be() -> None:
    """And the error is told."""
    things = Things(fails="close")
    shared = PerLoop(things.close)

    async def main() -> None:
        with pytest.raises(ValueError, match="cannot be closed"):
            async with shared.keep():
                for key in ("a", "b"):
                    async with shared.hold(key, things.make):
                        pass

    asyncio.run(main())
    assert things.told.count("closed") == 2


def test_who_comes_while_what_was_kept_is_closed_gets_a_new_one() -> None:
    """Nobody is given a thing that is about to be closed."""
    things = Things()

    async def close(thing: str) -> None:
        things.told.append("closing")
        for _ in range(3):
            await asyncio.sleep(0)
        await things.close(thing)

    shared = PerLoop(close)

    async def come() -> None:
        while "closing" not in things.told:  # the last one that was made, and the first waits
            await asyncio.sleep(0)
        await a_while(shared, things, 20)

    async def main() -> None:
        coming = asyncio.create_task(come())
        async with shared.keep():
            for key in ("key", "last"):
                async with shared.hold(key, things.make):
                    pass
        await coming

    asyncio.run(main())
    assert things.told.count("made") == things.told.count("closed") == 3
    assert things.told[-3:] == ["used thing", "closing", "closed"]


def test_things_of_different_keys_are_different() -> None:
    """Each is made and closed by itself."""
    things = Things()
    shared = PerLoop(things.close)

    async def main() -> None:
        async with shared.hold("a", things.make), shared.hold("b", things.make):
            pass

    asyncio.run(main())
    assert things.told == ["made", "made", "closed", "closed"]


@pytest.mark.parametrize("fails", ["make", "close"])
def test_what_fails_is_forgotten(fails: str) -> None:
    """The next one who asks gets another try."""
    things = Things(fails=fails)
    shared = PerLoop(things.close)

    async def main() -> None:
        with pytest.raises(ValueError, match="cannot be"):
            await a_while(shared, things, 1)
        things.fails = ""
        await a_while(shared, things, 1)

    asyncio.run(main())
    assert things.told[-3:] == ["made", "used thing", "closed"]


def test_a_holder_who_is_cancelled_lets_go() -> None:
    """And others keep what they hold."""
    things = Things()
    shared = PerLoop(things.close)

    async def main() -> None:
        gone = asyncio.create_task(a_while(shared, things, 1_000))
        stays = asyncio.create_task(a_while(shared, things, 5))
        await asyncio.sleep(0)
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone
        assert "closed" not in things.told
        await stays

    asyncio.run(main())
    assert things.told == ["made", "used thing", "closed"]
