"""A real tracking server of MLflow, from its own environment: `make mlflow`."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.fakes.http_server import free_port
from tests.fakes.offline import skip_or_fail
from tests.fakes.processes import ROOT

BIN = ROOT / ".venv-mlflow" / "bin"
_STARTS_WITHIN = 240
_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false",
}
_CLIENT = """
import json, sys
import mlflow

retrievals, begun, place = json.loads(sys.argv[1])
mlflow.set_experiment("help-desk")
for number, (question, contexts) in enumerate(retrievals):
    start = (begun + number) * 10**9
    root = mlflow.start_span_no_context(
        "rag", inputs={"question": question}, tags={"section": "towers"}, start_time_ns=start
    )
    span = mlflow.start_span_no_context(
        "search", "RETRIEVER", root, inputs={"query": question}, start_time_ns=start + 1_000
    )
    span.end(outputs=[{"page_content": text} for text in contexts], end_time_ns=start + 2_000)
    root.end(outputs={"answer": "So it says."}, end_time_ns=start + 3_000)
mlflow.search_traces().to_json(place, orient="records", lines=True)
"""
"""What the page of the preset says, with MLflow's own client."""


@dataclass(frozen=True)
class MLflowServer:
    """A running server with one experiment."""

    url: str
    folder: Path

    def export(self, retrievals: Sequence[Any], begun: int) -> str:
        """Trace retrievals, each a question with its contexts, and export them as JSON lines."""
        place = self.folder / "traces.jsonl"
        subprocess.run(
            [BIN / "python", "-c", _CLIENT, json.dumps([retrievals, begun, str(place)])],
            env={**os.environ, **_QUIET, "MLFLOW_TRACKING_URI": self.url},
            cwd=self.folder,
            timeout=_STARTS_WITHIN,
            check=True,
        )
        return place.read_text("utf-8")

    def assessments(self, trace: str) -> list[dict[str, Any]]:
        """What is assessed on a trace."""
        with urlopen(f"{self.url}/api/3.0/mlflow/traces/{trace}", timeout=120) as answer:
            found = json.loads(answer.read())["trace"]["trace_info"]
        return list(found.get("assessments", []))


@contextmanager
def mlflow_server(folder: Path) -> Iterator[MLflowServer]:
    """Start a server that stores in a folder; stop it at the end of the block."""
    if not (BIN / "mlflow").exists():
        skip_or_fail("no server of MLflow: make mlflow")
    port = free_port()
    command = [BIN / "mlflow", "server", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
    log = folder / "server.log"
    with (
        log.open("wb") as file,
        subprocess.Popen(
            command,
            env={**os.environ, **_QUIET},
            cwd=folder,
            stdout=file,
            stderr=file,
            start_new_session=True,
        ) as process,
    ):
        try:
            server = MLflowServer(f"http://127.0.0.1:{port}", folder)
            _wait(server, process, log)
            yield server
        finally:
            os.killpg(process.pid, 15)  # its workers too
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)


def _wait(server: MLflowServer, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _STARTS_WITHIN
    while True:
        try:
            with urlopen(f"{server.url}/health", timeout=120):
                return
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"MLflow did not start: {log.read_text()[-2000:]}") from None
            time.sleep(0.2)
