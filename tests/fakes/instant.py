"""An event loop on which nobody waits: where all are asleep, its clock jumps to the next who wakes.

What happens there depends on nothing but the code: minutes take milliseconds, and a machine that
stalls changes nothing. Threads have no part in it: what would run in one runs at once.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def instantly(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, on a loop of this kind."""
    with asyncio.Runner(loop_factory=InstantLoop) as runner:
        return runner.run(main)


class InstantLoop(asyncio.SelectorEventLoop):
    """The loop; its time begins at 0."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Impatient(self._pass))

    def time(self) -> float:
        """Seconds that were slept here."""
        return self._now

    def _pass(self, seconds: float) -> None:
        self._now += seconds

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run it now."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class _Impatient(selectors.SelectSelector):
    """Lets the time pass that it should have waited."""

    def __init__(self, sleep: Callable[[float], None]) -> None:
        super().__init__()
        self._sleep = sleep

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready now; only where nobody ever wakes by himself, it is waited for."""
        if timeout is not None and timeout > 0:
            self._sleep(timeout)
            timeout = 0
        return super().select(timeout)
