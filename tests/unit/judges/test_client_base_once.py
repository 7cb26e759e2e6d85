"""Once: one asks, many wait, and nobody is left waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

import pytest

from ragmetrics.errors import JudgeRefused, Unanswered
from ragmetrics.judges import SingleFlight
from ragmetrics.judges.client_base import REMEMBERED, SingleFlightScope
from ragmetrics.metrics import Grade
from ragmetrics.records import Answer, Status

T = TypeVar("T")
GOOD = Grade(grade=2)


class Source:
    """Answers when it is told to; counts how often it is asked."""

    def __init__(self, *answers: Answer | RuntimeError | JudgeRefused) -> None:
        self.asked = 0
        self.given_up = 0
        self.go_on = asyncio.Event()
        self._answers = answers or (GOOD,)

    async def find(self) -> Answer:
        """The next answer, which may be that there is none; the last one over and over."""
        self.asked += 1
        found = self._answers[min(self.asked, len(self._answers)) - 1]
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if isinstance(found, RuntimeError | JudgeRefused):
            raise found
        return found


async def waiting(one: Awaitable[T]) -> T:
    """As a row waits."""
    return await one


def begin(asker: SingleFlightScope, source: Source, key: str = "key") -> asyncio.Task[Answer]:
    """Ask, and wait for the answer in a task."""
    return asyncio.create_task(waiting(asker.ask(key, source.find)))


def play(main: Coroutine[Any, Any, None]) -> None:
    """Run; the event loop must have nothing to complain about."""
    complaints: list[Any] = []

    async def whole() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))
        await asyncio.wait_for(main, 60)

    asyncio.run(whole())
    assert not complaints


def test_one_asks_and_many_wait() -> None:
    """Whoever they are; those who come later get the answer at once."""

    async def main() -> None:
        once, source = SingleFlight(), Source()
        askers = [SingleFlightScope(once), SingleFlightScope(once)]
        tasks = [begin(asker, source) for asker in askers * 3]
        await asyncio.sleep(0)
        source.go_on.set()
        assert await asyncio.gather(*tasks) == [GOOD] * 6
        assert await askers[1].ask("key", source.find) == GOOD
        assert source.asked == 1

    play(main())


def test_askers_of_different_judges_share_nothing() -> None:
    """Each has a Once of its own."""

    async def main() -> None:
        source = Source()
        source.go_on.set()
        for asker in (SingleFlightScope(), SingleFlightScope()):
            await asker.ask("key", source.find)
        assert source.asked == 2

    play(main())


def test_an_answer_is_on_its_way_before_anybody_waits() -> None:
    """So a wave of requests goes out together."""

    async def main() -> None:
        asker, source = SingleFlightScope(), Source()
        asker.ask("key", source.find)
        assert asker.flight.is_asked("key")
        assert not asker.flight.is_asked("other")
        await asyncio.sleep(0)
        assert source.asked == 1
        await asker.stop()

    play(main())


def test_where_the_asker_stops_another_who_waits_asks_anew() -> None:
    """One part that breaks takes no other with it."""

    async def main() -> None:
        once, source = SingleFlight(), Source()
        first, second = SingleFlightScope(once), SingleFlightScope(once)
        lost, saved = begin(first, source), begin(second, source)
        await asyncio.sleep(0)
        lost.cancel()
        await first.stop()
        source.go_on.set()
        assert await saved == GOOD
        assert (source.asked, source.given_up) == (2, 1)
        with pytest.raises(asyncio.CancelledError):
            await lost

    play(main())


def test_several_who_wait_ask_anew_once() -> None:
    """The first of them asks for all."""

    async def main() -> None:
        once, source = SingleFlight(), Source()
        first, others = SingleFlightScope(once), [SingleFlightScope(once) for _ in range(5)]
        first.ask("key", source.find)
        tasks = [begin(other, source) for other in others]
        await asyncio.sleep(0)
        await first.stop()
        source.go_on.set()
        assert await asyncio.gather(*tasks) == [GOOD] * 5
        assert source.asked == 2

    play(main())


def test_one_who_gives_up_waiting_does_not_cancel_the_answer() -> None:
    """Others wait for it still, or will."""

    async def main() -> None:
        asker, source = SingleFlightScope(), Source()
        gone, stays = begin(asker, source), begin(asker, source)
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        source.go_on.set()
        assert await stays == GOOD
        assert (source.asked, source.given_up) == (1, 0)

    play(main())


def test_one_who_is_cancelled_while_the_asker_stops_asks_no_more() -> None:
    """The two come together where a run ends."""

    async def main() -> None:
        asker, source = SingleFlightScope(), Source()
        task = begin(asker, source)
        await asyncio.sleep(0)
        task.cancel()
        await asker.stop()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert source.asked == 1

    play(main())


@pytest.mark.parametrize(
    "failure", [Unanswered(Status.UNREADABLE, "nothing"), RuntimeError("broken")]
)
def test_failures_are_forgotten(failure: Unanswered | RuntimeError) -> None:
    """All who wait get it; who asks later may have better luck."""

    async def main() -> None:
        asker, source = SingleFlightScope(), Source(failure, GOOD)
        source.go_on.set()
        tasks = [begin(asker, source) for _ in range(3)]
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert found == [failure] * 3
        assert not asker.flight.is_asked("key")
        assert await asker.ask("key", source.find) == GOOD
        assert source.asked == 2

    play(main())


def test_an_error_that_nobody_waits_for_is_no_complaint() -> None:
    """The run ends through the first row that meets a refusal; the others are gone."""

    async def main() -> None:
        asker, source = SingleFlightScope(), Source(JudgeRefused("wrong key"))
        source.go_on.set()
        asker.ask("key", source.find)
        for _ in range(3):
            await asyncio.sleep(0)
        assert source.asked == 1

    play(main())


def test_so_many_answers_are_remembered_and_the_latest_used_stay() -> None:
    """A million requests do not fill the memory."""

    async def main() -> None:
        once, source = SingleFlight(), Source()
        asker = SingleFlightScope(once)
        source.go_on.set()
        for number in range(REMEMBERED):
            await asker.ask(str(number), source.find)
        await asker.ask("0", source.find)
        await asker.ask("new", source.find)
        assert asker.flight.is_asked("0")
        assert not asker.flight.is_asked("1")
        assert source.asked == REMEMBERED + 1

    play(main())


def test_what_is_on_its_way_is_never_forgotten() -> None:
    """A slow answer outlives many quick ones that came after it."""

    async def main() -> None:
        asker, slow, quick = SingleFlightScope(), Source(), Source()
        quick.go_on.set()
        task = begin(asker, slow, "slow")
        for number in range(REMEMBERED + 10):
            await asker.ask(str(number), quick.find)
        again = begin(asker, slow, "slow")
        slow.go_on.set()
        assert await asyncio.gather(task, again) == [GOOD] * 2
        assert slow.asked == 1
        assert not asker.flight.is_asked("5")

    play(main())
