"""What the engine's benchmarks run: ragmetrics, the floor client and peers, each as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from tests.fakes.processes import running

ROOT = Path(__file__).parents[1]
METRICS = ("context_relevance", "context_recall", "response_relevancy")
IN_FLIGHT = 64
Command: TypeAlias = Sequence[str | Path]


@dataclass(frozen=True)
class Run:
    """What one process took and what the endpoint saw of it."""

    wall: float
    """Seconds, of the whole process."""
    cpu: float
    """Seconds of processor time, of the whole process."""
    peak_mb: float
    told: Mapping[str, Any]
    """The JSON that it printed last."""
    seen: Mapping[str, Any] = field(default_factory=dict)
    """The endpoint's counts."""

    @property
    def requests(self) -> int:
        """Attempts that reached the endpoint, embeddings among them."""
        return int(self.seen["requests"])

    @property
    def cpu_ms(self) -> float:
        """Milliseconds of processor time for each request, start-up included."""
        return 1000 * self.cpu / self.requests

    @property
    def prompt_tokens(self) -> float:
        """Characters of the messages sent to the judge, in fours."""
        return float(sum(kind[1] for kind in self.seen["kinds"].values())) / 4

    @property
    def completion_tokens(self) -> float:
        """Characters of the judge's replies, in fours."""
        return float(sum(kind[2] for kind in self.seen["kinds"].values())) / 4

    @property
    def server_share(self) -> float:
        """Share of one core that the endpoint took meanwhile."""
        return float(self.seen["cpu_seconds"]) / self.wall


@dataclass(frozen=True)
class Endpoint:
    """The endpoint under way."""

    port: int

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """What clients are told."""
        return f"{self.address}/v1"

    def begin(self, **behaviour: Any) -> None:
        """Forget the counts and behave so from now on."""
        self._post("reset", {})
        self._post("faults", behaviour)

    def stats(self) -> dict[str, Any]:
        """The counts since `begin`."""
        with urllib.request.urlopen(f"{self.address}/stats", timeout=60) as response:
            found: dict[str, Any] = json.load(response)
        return found

    def write_bodies(self, path: Path) -> Path:
        """Write what was sent since `begin`, for the floor client."""
        self._post("bodies", {"path": str(path)})
        return path

    def _post(self, path: str, body: Any) -> None:
        request = urllib.request.Request(f"{self.address}/{path}", json.dumps(body).encode())
        urllib.request.urlopen(request, timeout=60).close()

    def watch(self, command: Command, folder: Path, **behaviour: Any) -> Run:
        """Run a command against it in a folder, with the counts of what it sent."""
        self.begin(**behaviour)
        run = whole_process(command, folder)
        return Run(run.wall, run.cpu, run.peak_mb, run.told, self.stats())


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """An endpoint in a process of its own."""
    with running("benchmarks.judge_endpoint") as port:
        yield Endpoint(port)


def whole_process(command: Command, folder: Path) -> Run:
    """Run to the end; RuntimeError, with what it said, where that is a failure."""
    output, said = folder / "stdout", folder / "stderr"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OPENAI_API_KEY": "none",
        "RAGAS_DO_NOT_TRACK": "true",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled, as by an installation
    start = time.monotonic()
    with output.open("wb") as stdout, said.open("wb") as stderr:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            stdout=stdout,
            stderr=stderr,
            env=environment,
        )
        _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    lines = output.read_text("utf-8").splitlines()
    if process.returncode or not lines:
        tail = said.read_text("utf-8", "replace")[-2_000:]
        raise RuntimeError(f"{command}: exit code {process.returncode}\n{tail}")
    cpu = usage.ru_utime + usage.ru_stime
    return Run(wall, cpu, usage.ru_maxrss / 1024, json.loads(lines[-1]))


def ours(
    server: Endpoint,
    log: Path,
    folder: Path,
    *,
    behaviour: Mapping[str, Any],
    judge: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    options: Sequence[str] = (),
    metrics: Sequence[str] = METRICS,
) -> Run:
    """`ragmetrics score` in a folder: a fresh one has an empty store, a used one what was kept."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "settings.yaml"
    chosen = {"judge": {"concurrency": IN_FLIGHT, **(judge or {})}, **(settings or {})}
    file.write_text(yaml.safe_dump(chosen), "utf-8")
    command: Command = [
        sys.executable,
        "-m",
        "ragmetrics",
        "score",
        log,
        "--metrics",
        ",".join(metrics),
    ]
    asked = ["--judge", "openai", "--model", "judge", "--base-url", server.base_url]
    return server.watch(
        [*command, *asked, "--settings", file, "--json", *options], folder, **behaviour
    )


def floor(
    server: Endpoint,
    bodies: Path,
    folder: Path,
    *,
    behaviour: Mapping[str, Any],
    in_flight: int = IN_FLIGHT,
) -> Run:
    """The bare client over the bodies."""
    folder.mkdir(parents=True, exist_ok=True)
    script = Path(__file__).with_name("floor.py")
    command: Command = [sys.executable, script, server.address, bodies, str(in_flight)]
    return server.watch(command, folder, **behaviour)


@dataclass(frozen=True)
class Peer:
    """Another tool, in an environment of its own."""

    name: str
    package: str
    variable: str
    folder: str
    arguments: tuple[str, ...] = ()

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return Path(os.environ.get(self.variable) or ROOT / self.folder / "bin" / "python")

    @property
    def installed(self) -> bool:
        """Whether it can be run."""
        check = f"import {self.package}, openai, aiohttp"
        environment = {**os.environ, "DEEPEVAL_TELEMETRY_OPT_OUT": "1", "RAGAS_DO_NOT_TRACK": "1"}
        try:
            found = subprocess.run(
                [self.python, "-c", check], capture_output=True, check=False, env=environment
            )
        except OSError:
            return False
        return found.returncode == 0

    def run(
        self, server: Endpoint, log: Path, folder: Path, *, behaviour: Mapping[str, Any]
    ) -> Run:
        """Score a log by it."""
        folder.mkdir(parents=True, exist_ok=True)
        script = Path(__file__).with_name(f"peer_{self.package}.py")
        command: Command = [self.python, script, *self.arguments, server.base_url, log]
        return server.watch(command, folder, **behaviour)


def _ragas(name: str, way: str) -> Peer:
    return Peer(name, "ragas", "RAGAS_PYTHON", ".venv-ragas", (way,))


RAGAS_DEFAULT = _ragas("ragas, default", "default")
RAGAS_TUNED = _ragas("ragas, tuned", "tuned")
RAGAS_BEST = _ragas("ragas, best", "best")
DEEPEVAL = Peer("DeepEval", "deepeval", "DEEPEVAL_PYTHON", ".venv-deepeval")
