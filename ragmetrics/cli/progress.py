"""The progress of a long command: a bar on a terminal, lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from ragmetrics.cli.output import summary as tables

EVERY = 60.0
"""Least number of seconds between two lines of a step; the last line comes at once."""


@contextmanager
def progress_reporter(
    console: Console, what: str, *, quiet: bool = False
) -> Iterator[Callable[[str, int, int], None]]:
    """A callback `(step, done, total)` that shows progress.

    `what` stands beside the bar before the first step. `quiet` hides the bar; a log gets its lines
    all the same.
    """
    if console.is_terminal:
        with tables.progress(console, what, quiet=quiet) as bar:
            yield bar
    else:
        yield _Lines(console)


class _Lines:
    """Prints a line when a step begins, one now and then, and one when it is done."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun: float | None = None
        """When the current step began."""
        self._printed = 0.0

    def __call__(self, name: str, done: int, total: int) -> None:
        now, after = time.monotonic(), ""
        if self._begun is None:
            self._begun = now
        elif done < total and now - self._printed < EVERY:
            return
        else:
            after = f" after {now - self._begun:.0f} s"
        self._printed = now
        self._console.print(f"{name}: {done:,} of {total:,}{after}")
        if done >= total:
            self._begun = None
