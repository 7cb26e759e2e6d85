"""Keeps a test in its own process: it starts no other one, and no server.

`make test-fast` is quick and needs nothing that way.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_OUTSIDE = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}
_SOCKETS = {"socket.bind", "socket.connect"}
_refusing = [False]


class LeavesProcess(Exception):
    """A test without the mark `process` starts a process or a server, or speaks to one."""


@contextmanager
def alone(*, refuse: bool) -> Iterator[None]:
    """Refuse other processes and servers meanwhile, or allow them."""
    _install()
    before, _refusing[0] = _refusing[0], refuse
    try:
        yield
    finally:
        _refusing[0] = before


@cache
def _install() -> None:
    sys.addaudithook(_refuse_others)


def _refuse_others(event: str, arguments: tuple[Any, ...]) -> None:
    if not _refusing[0]:
        return
    # A socket whose address is no tuple is a pair of this process, as event loops have.
    if event in _OUTSIDE or (event in _SOCKETS and isinstance(arguments[1], tuple)):
        raise LeavesProcess(f"{event} in a test without the mark: @pytest.mark.process")
