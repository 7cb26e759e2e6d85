"""Repeats what failed for the moment, after pauses that grow, or as long as a server asks."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from ragmetrics.errors import RagmetricsError

T = TypeVar("T")


class RetryableError(Exception):
    """A failed attempt that may be repeated; `kind` is the name it is counted under."""

    def __init__(self, kind: str, message: str, *, wait: float = 0.0) -> None:
        super().__init__(message)
        self.kind = kind
        self.wait = wait
        """Seconds that the endpoint asks to wait."""


@dataclass
class Backoff:
    """Pauses before further attempts, all in one place, and their limits.

        pause = max(chance * min(first * 2^failures, longest), asked),   chance in [0.5, 1]

    An error is repeated if it is `transient`. Its `wait` are the seconds that a server asks for.
    """

    first: float = 1.0
    """First pause in seconds."""
    longest: float = 32.0
    """Longest pause in seconds, unless a server asks for more."""
    attempts: float = math.inf
    """Most attempts of one call."""
    seconds: float = math.inf
    """Most seconds of all pauses and failed attempts together, of all calls."""
    longest_wait: float = math.inf
    """A server that asks for more seconds than these is not asked again."""
    sleep: Callable[[float], None] = time.sleep
    waited: float = field(default=0.0, init=False)
    """Seconds of pauses and failed attempts so far."""
    _failures: int = field(default=0, init=False)

    def call(self, act: Callable[[], T]) -> T:
        """The result of `act`. Raises its last error if it is not transient, or out of attempts."""
        self._failures = 0
        while True:
            begun = time.monotonic()
            try:
                return act()
            except RagmetricsError as error:
                self.waited += time.monotonic() - begun
                if not error.transient:
                    raise
                self.pause(error)

    def pause(self, error: RagmetricsError) -> None:
        """Wait before the next attempt. Raises the error if there is none."""
        asked = getattr(error, "wait", None) or 0.0
        grown = min(self.first * 2.0 ** min(self._failures, 32), self.longest)
        self._failures += 1
        pause = max(grown * random.uniform(0.5, 1.0), asked)  # noqa: S311 - keeps no secret
        if (
            self._failures >= self.attempts
            or asked > self.longest_wait
            or self.waited + pause > self.seconds
        ):
            raise error
        self.sleep(pause)
        self.waited += pause
