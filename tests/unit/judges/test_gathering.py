"""Turns: how many rows are asked at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ragmetrics.judges.gathering import Turns


async def some_rows(turns: Turns, count: int, log: list[str]) -> list[asyncio.Task[None]]:
    """Rows with two requests each, which note what they do."""

    async def row(number: int) -> None:
        async with turns.turn():
            for request in "ab":
                log.append(f"{number}{request}")
                await asyncio.sleep(0)

    tasks = [asyncio.create_task(row(number)) for number in range(count)]
    await asyncio.sleep(0)
    return tasks


def played(most: Callable[[], int], count: int = 4, cancelled: int | None = None) -> list[str]:
    """What was done in which order."""

    async def play() -> list[str]:
        log: list[str] = []
        tasks = await some_rows(Turns(most), count, log)
        if cancelled is not None:
            tasks[cancelled].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return log

    return asyncio.run(play())


def test_requests_about_a_row_follow_each_other() -> None:
    """With one slot, no other row comes between."""
    assert played(lambda: 1) == ["0a", "0b", "1a", "1b", "2a", "2b", "3a", "3b"]


def test_as_many_rows_as_the_endpoint_takes_requests() -> None:
    """Two slots: two rows side by side."""
    assert sorted(played(lambda: 2)[:4]) == ["0a", "0b", "1a", "1b"]


def test_more_rows_begin_when_the_endpoint_takes_more() -> None:
    """The limit is asked for at the end of each row."""
    limits = iter([1, 1, 1, 1, 3])
    log = played(lambda: next(limits, 3))
    assert sorted(log[2:5]) == ["1a", "2a", "3a"]


def test_a_row_that_is_cancelled_while_it_waits_holds_up_no_other() -> None:
    """Its place is given on."""
    assert played(lambda: 1, cancelled=1) == ["0a", "0b", "2a", "2b", "3a", "3b"]
