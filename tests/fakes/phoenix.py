"""A real server of Arize Phoenix, from its own environment: `make phoenix`."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from tests.fakes.http_server import free_port
from tests.fakes.offline import skip_or_fail
from tests.fakes.processes import ROOT

SERVER = ROOT / ".venv-phoenix" / "bin" / "phoenix"
_STARTS_WITHIN = 120


@dataclass(frozen=True)
class PhoenixServer:
    """A running server with the project `default`."""

    url: str

    def send_spans(self, spans: Sequence[Mapping[str, Any]]) -> None:
        """Send spans by OTLP, and wait until the server shows all of them."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )
        from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

        made = [
            Span(
                trace_id=bytes.fromhex(span["trace_id"]),
                span_id=bytes.fromhex(span["span_id"]),
                name=span["name"],
                start_time_unix_nano=span["start"],
                end_time_unix_nano=span["start"] + 10**9,
                attributes=[_attribute(*pair) for pair in span["attributes"].items()],
            )
            for span in spans
        ]
        request = ExportTraceServiceRequest(
            resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=made)])]
        )
        headers = {"Content-Type": "application/x-protobuf"}
        self._open("/v1/traces", request.SerializeToString(), headers)
        until = time.monotonic() + _STARTS_WITHIN
        while len(self.spans()) < len(spans):
            if time.monotonic() > until:
                raise TimeoutError("Phoenix does not show the spans that it took")
            time.sleep(0.1)

    def spans(self) -> list[dict[str, Any]]:
        """The spans of the project, as its REST API gives them."""
        try:
            return list(self._json("/v1/projects/default/spans?limit=1000")["data"])
        except URLError:
            return []

    def annotations(self, span: str) -> list[dict[str, Any]]:
        """The annotations of a span."""
        path = f"/v1/projects/default/span_annotations?span_ids={span}&limit=1000"
        return list(self._json(path)["data"])

    def document_annotations(self, span: str) -> list[dict[str, Any]]:
        """The annotations of the documents of a span, by the API of Phoenix's own pages."""
        [node] = [one["id"] for one in self.spans() if one["context"]["span_id"] == span]
        fields = "name score label documentPosition annotatorKind metadata"
        query = f'{{node(id: "{node}") {{... on Span {{documentEvaluations {{{fields}}}}}}}}}'
        answer = self._json("/graphql", json.dumps({"query": query}).encode())
        return list(answer["data"]["node"]["documentEvaluations"])

    def _json(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        return dict(json.loads(self._open(path, body, {"Content-Type": "application/json"})))

    def _open(self, path: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        with urlopen(Request(self.url + path, body, dict(headers)), timeout=120) as answer:
            return bytes(answer.read())


@contextmanager
def phoenix_server(folder: Path) -> Iterator[PhoenixServer]:
    """Start a server that stores in a folder; stop it at the end of the block."""
    if not SERVER.exists():
        skip_or_fail("no server of Phoenix: make phoenix")
    port = free_port()
    environment = {
        **os.environ,
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    log = folder / "server.log"
    with (
        log.open("wb") as file,
        subprocess.Popen(
            [SERVER, "serve"], env=environment, cwd=folder, stdout=file, stderr=file
        ) as process,
    ):
        try:
            server = PhoenixServer(f"http://127.0.0.1:{port}")
            _wait(server, process, log)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(server: PhoenixServer, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _STARTS_WITHIN
    while True:
        try:
            server._open("/healthz", None, {})
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"Phoenix did not start: {log.read_text()[-2000:]}") from None
            time.sleep(0.2)
        else:
            return


def _attribute(name: str, value: Any) -> Any:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

    kind = "double_value" if isinstance(value, float) else "string_value"
    return KeyValue(key=name, value=AnyValue(**{kind: value}))
