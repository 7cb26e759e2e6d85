"""How far a long command is: a bar on a terminal, and lines where its output goes into a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from ragmetrics.cli.output import summary as tables

EVERY = 60.0
"""Seconds between two lines of a step, but for its last."""


@contextmanager
def progress_reporter(
    console: Console, what: str, *, quiet: bool = False
) -> Iterator[Callable[[str, int, int], None]]:
    """Whoever is told what is at work, how much of it is done, and of how much.

    `what` stands beside the bar until then. A `quiet` one has no bar; lines are for a log, and in
    nobody's way.
    """
    if console.is_terminal:
        with tables.progress(console, what, quiet=quiet) as bar:
            yield bar
    else:
        yield _Lines(console)


class _Lines:
    """A line when a step begins, one now and then, and one when it is done."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun: float | None = None
        """When the step began that is at work."""
        self._told = 0.0

    def __call__(self, name: str, done: int, total: int) -> None:
        now, after = time.monotonic(), ""
        if self._begun is None:
            self._begun = now
        elif done < total and now - self._told < EVERY:
            return
        else:
            after = f" after {now - self._begun:.0f} s"
        self._told = now
        self._console.print(f"{name}: {done:,} of {total:,}{after}", markup=False, soft_wrap=True)
        if done >= total:
            self._begun = None
