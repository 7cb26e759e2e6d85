"""Servers in processes of their own, so that a test and its server do not share one lock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNTIL_EOF = "--until-eof"


@contextmanager
def running(module: str, *arguments: str) -> Iterator[int]:
    """Run a module that serves on localhost and prints `{"port": N}`; yield the port."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, UNTIL_EOF, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:  # at its end closes stdin, at which the server stops, and waits
        first_line = process.stdout.readline() if process.stdout else ""
        if not first_line:
            raise RuntimeError(f"{module} did not start: exit code {process.wait()}")
        yield json.loads(first_line)["port"]


def announce(port: int, *, until_eof: bool) -> None:
    """Say which port is served; `until_eof`: stop when stdin closes, as it does if tests die."""
    print(json.dumps({"port": port}), flush=True)
    if until_eof:
        threading.Thread(target=_stop_at_eof, daemon=True).start()


def _stop_at_eof() -> None:
    sys.stdin.read()
    os._exit(0)
