"""A Prefect server and workers in processes of their own, as an installation has them.

with prefect_live(folder) as live:
    live.cli("work-pool", "create", "ragmetrics", "--type", "process")
    with live.worker(cwd=checkout):
        run = live.wait_for(lambda: live.flow_runs(name="nightly"), seconds=60)
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.fakes.processes import ROOT

T = TypeVar("T")
PREFECT = [sys.executable, "-m", "prefect"]


@dataclass(frozen=True)
class Live:
    """A server under way."""

    folder: Path
    port: int
    environment: Mapping[str, str]
    """Of everything that speaks to it."""

    @property
    def api(self) -> str:
        """Its address, as PREFECT_API_URL has it."""
        return f"http://127.0.0.1:{self.port}/api"

    def post(self, path: str, body: Any = None) -> Any:
        """POST JSON to the API, as a builder in any language would; return what it answers."""
        return self._send("POST", path, body or {})

    def get(self, path: str) -> Any:
        """GET from the API."""
        return self._send("GET", path, None)

    def flow_runs(self, **where: Any) -> list[dict[str, Any]]:
        """Runs, oldest first, whose fields have these values, as in `state_type="COMPLETED"`."""
        found = self.post("/flow_runs/filter", {"sort": "START_TIME_ASC"})
        return [run for run in found if all(run[name] == value for name, value in where.items())]

    def cli(
        self, *arguments: str, cwd: Path = ROOT, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `prefect ...` to its end; AssertionError with its output where it fails."""
        done = subprocess.run(
            [*PREFECT, *arguments],
            cwd=cwd,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=180,
        )
        assert done.returncode == 0, f"prefect {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done

    @contextmanager
    def worker(
        self, pool: str = "ragmetrics", *, cwd: Path = ROOT, **environment: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A worker of a pool, in a process group of its own; output goes to a file of `folder`."""
        command = [*PREFECT, "worker", "start", "--pool", pool]
        with _process(command, cwd, {**self.environment, **environment}, self._log("worker")) as it:
            yield it

    def wait_for(self, what: Callable[[], T], *, seconds: float = 60, every: float = 0.5) -> T:
        """What is asked for, once it is there (is true); TimeoutError with all logs where it
        does not come.
        """
        end = time.monotonic() + seconds
        while True:
            if found := what():
                return found
            if time.monotonic() > end:
                raise TimeoutError(f"not within {seconds} s\n{self.logs()}")
            time.sleep(every)

    def logs(self) -> str:
        """The ends of what server and workers wrote."""
        return "\n".join(
            f"--- {path.name}\n{path.read_text('utf-8', 'replace')[-4_000:]}"
            for path in sorted(self.folder.glob("*.log"))
        )

    def _send(self, method: str, path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.api + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=30) as response:
            text = response.read()
        return json.loads(text) if text else None

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}-{time.monotonic_ns()}.log"


@contextmanager
def prefect_live(folder: Path, **environment: str) -> Iterator[Live]:
    """A server with an empty database in `folder`, which ends with the block.

    `environment` is for the server and all that speak to it, and wins over the defaults.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    variables = {
        **os.environ,
        "PREFECT_HOME": str(folder / "home"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_SERVER_API_HOST": "127.0.0.1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "PREFECT_CLI_PROMPT": "false",
        "NO_COLOR": "1",
        **environment,
    }
    live = Live(folder, port, variables)
    command = [*PREFECT, "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with _process(command, ROOT, variables, folder / "server.log") as server:
        live.wait_for(lambda: _healthy(live, server), seconds=180)
        yield live


def _healthy(live: Live, server: subprocess.Popen[bytes]) -> bool:
    if server.poll() is not None:
        raise RuntimeError(f"the server ended by itself\n{live.logs()}")
    try:
        return bool(live.get("/health"))
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


@contextmanager
def _process(
    command: list[str], cwd: Path, environment: Mapping[str, str], output: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with output.open("wb") as stream:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all of its group: what a worker runs goes with it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
