"""A Prefect server for one run by hand, started before Prefect is imported.

A run without a Prefect server starts one of its own, and Prefect does that when the flow begins.
That takes as long as our imports. So the command lines of flows start it first, and both happen at
the same time. Only the standard library is imported here.

The server listens on a socket that exists before the server does. Requests wait in it, so nobody
polls for the server, and no port is taken by somebody else meanwhile.
"""

from __future__ import annotations

import atexit
import gc
import os
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SETTINGS = ("PREFECT_API_URL", "PREFECT_PROFILE", "PREFECT_PROFILES_PATH")
_STOP_SECONDS = 5.0
_started: list[str] = []
"""The address of the server of this process, once it is started."""


def start() -> bool:
    """Start the server of this process, unless Prefect's settings may name another one. Returns
    whether it was started.
    """
    gc.set_threshold(100_000, 50, 100)
    helps = {"-h", "--help"} & set(sys.argv[1:])
    if helps or sys.platform == "win32" or may_be_set(os.environ, Path.cwd()):
        return False
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/api"
        process = _run(listening.fileno())
    sys.stderr.write(f"Starting temporary server on {url.removesuffix('/api')}\n")
    os.environ["PREFECT_API_URL"] = url
    os.environ["PREFECT_UI_URL"] = ""  # it has no pages
    _started.append(url)
    atexit.register(_stop, process)
    return True


@contextmanager
def without_heartbeat() -> Iterator[None]:
    """Run a flow without Prefect's heartbeat if the server is ours: nobody would miss it.

    At its end a flow waits up to a second for the heartbeat's thread.
    """
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    if not _started:
        yield
        return
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        yield


def may_be_set(environment: Mapping[str, str], folder: Path) -> bool:
    """Whether the environment, a profile or a file of this folder may name a server."""
    if any(environment.get(name) for name in _SETTINGS):
        return True
    if environment.get("PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"):
        return True
    home = Path(environment.get("PREFECT_HOME") or Path.home() / ".prefect")
    if _active_profile(home / "profiles.toml").keys() - {"PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"}:
        return True
    return (
        (folder / "prefect.toml").exists()
        or "PREFECT_" in _text_of(folder / ".env")
        or "api" in _table(folder / "pyproject.toml").get("tool", {}).get("prefect", {})
    )


def _active_profile(file: Path) -> dict[str, Any]:
    """The settings of the active profile; Prefect writes a file without any."""
    table = _table(file)
    profile = table.get("profiles", {}).get(table.get("active"), {})
    return profile if isinstance(profile, dict) else {}


def _table(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text_of(file))
    except tomllib.TOMLDecodeError:
        return {}


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _run(listening: int) -> subprocess.Popen[bytes]:
    """The server as Prefect starts it, without its pages and the services of a long life. Types of
    blocks are not registered: for that, Prefect imports all that is installed for it.
    """
    script = Path(__file__).with_name("server_process.py")
    environment = {
        **os.environ,
        "PREFECT_UI_ENABLED": "0",
        "PREFECT_API_BLOCKS_REGISTER_ON_START": "0",
        "PREFECT_MEMOIZE_BLOCK_AUTO_REGISTRATION": "0",
        "PREFECT__SERVER_EPHEMERAL": "1",
    }
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", str(script), str(listening)],
        env=environment,
        pass_fds=(listening,),
        stdin=subprocess.PIPE,
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin:
        process.stdin.close()
