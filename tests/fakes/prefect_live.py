"""A Prefect server and workers in processes of their own, as an installation has them.

with prefect_live(folder) as live:
    live.cli("work-pool", "create", "ragmetrics", "--type", "process")
    with live.worker(cwd=checkout):
        run = live.wait_for(lambda: live.flow_runs(name="nightly"), seconds=60)
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.fakes.http_server import free_port
from tests.fakes.prefect_database import write_database
from tests.fakes.processes import ROOT

T = TypeVar("T")
PREFECT = [sys.executable, "-m", "prefect"]
_MARK = "PREFECT_LIVE_MARK"
_ANSWER_SECONDS = 120
"""A server that shares two cores with two flow runs and other tests may take half a minute."""


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

    def delete(self, path: str) -> Any:
        """DELETE at the API."""
        return self._send("DELETE", path, None)

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
        self,
        pool: str = "ragmetrics",
        *,
        cwd: Path = ROOT,
        python: str = sys.executable,
        **environment: str,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A worker of a pool, in a process group of its own; output goes to a file of `folder`."""
        command = [python, "-m", "prefect", "worker", "start", "--pool", pool]
        with started(command, cwd, {**self.environment, **environment}, self._log("worker")) as it:
            yield it

    def wait_for(self, what: Callable[[], T], *, seconds: float = 240, every: float = 0.5) -> T:
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
        if auth := self.environment.get("PREFECT_API_AUTH_STRING"):
            request.add_header("Authorization", f"Basic {base64.b64encode(auth.encode()).decode()}")
        text = _patient(request)
        return json.loads(text) if text else None

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}-{time.monotonic_ns()}.log"


def _patient(request: urllib.request.Request) -> bytes:
    """The answer to a request; asked again, as Prefect's clients do, while the server says 503:
    its database is locked, and nothing was done.
    """
    for pause in (0.5, 1, 2, 4, 8, 16, 30, None):
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as response:
                body: bytes = response.read()
                return body
        except urllib.error.HTTPError as error:
            if error.code != 503 or pause is None:
                raise
            time.sleep(pause)
    raise AssertionError("unreachable")


@contextmanager
def prefect_live(folder: Path, **environment: str) -> Iterator[Live]:
    """A server with an empty database in `folder`, which ends with the block.

    `environment` is for the server and all that speak to it, and wins over the defaults.
    """
    write_database(folder / "home" / "prefect.db")
    port = free_port()
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
        "COLUMNS": "300",  # messages in one piece
        **environment,
    }
    live = Live(folder, port, variables)
    command = [*PREFECT, "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with started(command, ROOT, variables, folder / "server.log") as server:
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
def started(
    command: list[str], cwd: Path, environment: Mapping[str, str], output: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads a group of its own, and ends with the block together with all that came
    of it; what it prints goes to a file.
    """
    mark = uuid.uuid4().hex
    with output.open("wb") as stream:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**environment, _MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        end(process)
        _end_marked(mark)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all of its group. The flow runs of a worker live on, as after a crash:
    each leads a session of its own, and ends with the worker's block.
    """
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def kill_flow(run: str) -> int:
    """Kill -9 the process that a worker started for a flow run, with what that one started; return
    how many processes were killed. The worker lives on.
    """
    pids = list(_marked(f"PREFECT__FLOW_RUN_ID={run}".encode()))
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(pids)


def _end_marked(mark: str) -> None:
    """Kill all processes that inherited a mark, until there is none (on Linux)."""
    while running := list(_marked(f"{_MARK}={mark}".encode())):
        for pid in running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _marked(variable: bytes) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile, or is another user's
            if variable in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)
