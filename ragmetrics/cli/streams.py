"""Errors of printing never change the exit code of a command.

A reader that went away, a full disk, or a character that the terminal cannot show raises an error
in the middle of a command. Without this module the exit code would look like a finding.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, cast


class DurableStream:
    """A text stream that never raises on writing. `problem` is the first error.

    Characters that the encoding lacks are written as in Python, `\\u2192`.
    """

    def __init__(self, stream: TextIO | None) -> None:
        # None: it was closed before the command began (`>&-`).
        self._stream = stream or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
        self.problem: OSError | None = None
        if reconfigure := getattr(self._stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        """Write a text, or note the error."""
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Write the buffer, or note the error."""
        self._try(self._stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except OSError as error:
            self.problem = self.problem or error
            with suppress(OSError):  # only a file has a number
                self._drain(self._stream.fileno())

    def _drain(self, number: int) -> None:
        # Python writes the buffer again at its end, and would fail with an exit code of its own.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


@contextmanager
def durable_streams() -> Iterator[DurableStream]:
    """Replace stdout and stderr by durable streams; yields stdout."""
    streams = sys.stdout, sys.stderr
    out, err = map(DurableStream, streams)
    sys.stdout, sys.stderr = cast("TextIO", out), cast("TextIO", err)
    try:
        yield out
    finally:
        out.flush()
        err.flush()
        sys.stdout, sys.stderr = streams
