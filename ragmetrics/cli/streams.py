"""What a command prints never changes how it ends.

A reader that went away, a full disk or a character that the terminal lacks raise where something is
printed, in the midst of a command, and would pass for what the command found.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, cast


class DurableStream:
    """A text stream that takes all that is written, and remembers why it could not pass it on.

    Characters that its encoding lacks are written as in Python, `\\u2192`.
    """

    def __init__(self, stream: TextIO | None) -> None:
        # None: it was closed before the command began (`>&-`), so nobody wants to hear.
        self._stream = stream or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
        self.problem: OSError | None = None
        if reconfigure := getattr(self._stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        """Write it, or note why not."""
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Write what is buffered, or note why not."""
        self._try(self._stream.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except OSError as error:
            self.problem = self.problem or error
            with suppress(OSError):  # a stream that is no file has no number
                self._drain(self._stream.fileno())

    def _drain(self, number: int) -> None:
        # What is buffered is written once more as Python ends, which then fails with a code of its
        # own.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


@contextmanager
def durable_streams() -> Iterator[DurableStream]:
    """Make stdout and stderr such streams for a while; gives stdout."""
    streams = sys.stdout, sys.stderr
    out, err = map(DurableStream, streams)
    sys.stdout, sys.stderr = cast("TextIO", out), cast("TextIO", err)
    try:
        yield out
    finally:
        out.flush()
        err.flush()
        sys.stdout, sys.stderr = streams
