"""Tracing tools that get scores, as strict as they are documented: Langfuse, Phoenix, OTLP."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import jsonschema

from tests.fakes.http_server import Handler, serving

SCHEMA = json.loads(Path(__file__).with_name("langfuse_scores.schema.json").read_text("utf-8"))
PUBLIC, SECRET = "pk-lf-1", "sk-lf-secret-4711"
KEYS = {"LANGFUSE_PUBLIC_KEY": PUBLIC, "LANGFUSE_SECRET_KEY": SECRET}


class TracingServer:
    """What the tools have in common, and how they fail when told to."""

    content_type = "application/json"

    def __init__(self) -> None:
        self.url = ""
        self.requests = 0
        self.paths: list[str] = []
        self.statuses: list[int] = []
        """Statuses of the next answers; such a request is not taken unless it is 200."""
        self.mute = 0
        """So many of the next requests are taken, and their connections close without an answer."""
        self.refused: set[str] = set()
        """Metrics whose scores are refused."""
        self.instead: tuple[int, str, bytes] | None = None
        """Status, content type and body of every answer, though nothing is taken."""
        self.hold_at = 0
        """The request of this number is taken, and answered only by the end of its client."""
        self.held = threading.Event()
        self.released = threading.Event()

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Serve until the end of the block."""
        with serving(_Handler, tool=self) as url:
            self.url = url
            yield self

    def take(self, path: str, headers: Any, body: bytes) -> tuple[int, bytes]:
        """Take a request; return the status and the body of the answer."""
        raise NotImplementedError


class _Handler(Handler):
    tool: TracingServer

    def take(self) -> None:
        tool, body = self.tool, self.body()
        tool.requests += 1
        tool.paths.append(self.path)
        if tool.statuses and (status := tool.statuses.pop(0)) != 200:
            self.answer(status, b'{"error": "told to fail"}')
            return
        if tool.instead:
            status, kind, answer = tool.instead
            self.answer(status, answer, {"Content-Type": kind} if kind else {})
            return
        status, answer = tool.take(self.path, self.headers, body)
        if tool.requests == tool.hold_at:
            tool.held.set()
            tool.released.wait(60)
            self.close_connection = True
            return
        if tool.mute:
            tool.mute -= 1
            return
        self.answer(status, answer, {"Content-Type": tool.content_type})


class LangfuseServer(TracingServer):
    """It stores scores as Langfuse does: one per day of its timestamp, name and id."""

    def __init__(self) -> None:
        super().__init__()
        self.scores: dict[tuple[str, str, str], dict[str, Any]] = {}

    def take(self, path: str, headers: Any, body: bytes) -> tuple[int, bytes]:
        """Check the keys and the schema, and store the scores."""
        basic = base64.b64encode(f"{PUBLIC}:{SECRET}".encode()).decode()
        if headers["Authorization"] != f"Basic {basic}":
            said = f"Invalid credentials: {headers['Authorization']}"
            return 401, json.dumps({"message": said}).encode()
        sent = json.loads(body)
        events = path == "/api/public/ingestion"
        if not events and path != "/api/public/scores":
            return 404, b"{}"
        kind = "ingestion" if events else "scores"
        try:
            jsonschema.validate(sent, {**SCHEMA, "$ref": f"#/$defs/{kind}"})
        except jsonschema.ValidationError as error:
            return 400, json.dumps({"message": error.message}).encode()
        return self._ingest(sent["batch"]) if events else self._create(sent)

    def _create(self, scores: list[dict[str, Any]]) -> tuple[int, bytes]:
        errors = [{"message": f"{one['name']}: out of range"} for one in scores if self._bad(one)]
        for score in scores:
            if not self._bad(score):
                self._store(score, score["timestamp"])
        if not errors:
            return 202, b'{"message": "Accepted"}'
        accepted = len(scores) - len(errors)
        answer = {"accepted": accepted, "rejected": len(errors), "errors": errors}
        return 207, json.dumps(answer).encode()

    def _ingest(self, events: list[dict[str, Any]]) -> tuple[int, bytes]:
        answer: dict[str, list[dict[str, Any]]] = {"successes": [], "errors": []}
        for event in events:
            if self._bad(event["body"]):
                error = {"id": event["id"], "status": 400, "message": "out of range"}
                answer["errors"].append(error)
            else:
                self._store(event["body"], event["timestamp"])
                answer["successes"].append({"id": event["id"], "status": 201})
        return 207, json.dumps(answer).encode()

    def _bad(self, score: dict[str, Any]) -> bool:
        return score["name"] in self.refused

    def _store(self, score: dict[str, Any], timestamp: str) -> None:
        day = datetime.fromisoformat(timestamp).date().isoformat()
        self.scores[day, score["name"], score["id"]] = score


class PhoenixApi(TracingServer):
    """It takes a request of annotations whole, or names the spans that it does not have.

    As `annotate_spans` and `annotate_span_documents` of the package arize-phoenix 20 with `sync`.
    """

    def __init__(self, spans: Iterable[str] = ()) -> None:
        super().__init__()
        self.spans = set(spans)
        self.annotations: dict[tuple[str, str, Any], dict[str, Any]] = {}

    def take(self, path: str, headers: Any, body: bytes) -> tuple[int, bytes]:
        """Store the annotations; return an id for each."""
        if path not in (
            "/v1/span_annotations?sync=true",
            "/v1/document_annotations?sync=true",
        ):
            return 404, b"Not Found"
        sent = json.loads(body)["data"]
        missing = {one["span_id"] for one in sent} - self.spans
        if missing:
            return 404, f"Spans with IDs {', '.join(missing)} do not exist.".encode()
        for note in sent:
            self.annotations[note["name"], note["span_id"], note.get("document_position")] = note
        ids = [{"id": f"U3BhbkFubm90YXRpb246{number}"} for number in range(len(sent))]
        return 200, json.dumps({"data": ids}).encode()


class OtlpReceiver(TracingServer):
    """It reads requests by OpenTelemetry's own protobuf definitions, and stores every record."""

    content_type = "application/x-protobuf"

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Any] = []
        self.resources: list[Any] = []
        self.rejects = 0
        """Number of records of the next request that are rejected."""

    def take(self, path: str, headers: Any, body: bytes) -> tuple[int, bytes]:
        """Store the log records of a request."""
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
            ExportLogsServiceRequest,
            ExportLogsServiceResponse,
        )

        if path != "/v1/logs" or headers["Content-Type"] != "application/x-protobuf":
            return 404, b""
        answer = ExportLogsServiceResponse()
        for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
            self.resources.append(resource.resource)
            for scope in resource.scope_logs:
                self.records += list(scope.log_records)[self.rejects :]
        if self.rejects:
            answer.partial_success.rejected_log_records = self.rejects
            answer.partial_success.error_message = "too many attributes"
            self.rejects = 0
        return 200, answer.SerializeToString()


class Collector(TracingServer):
    """A collector of OpenTelemetry for traces and metrics."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: list[Any] = []
        self.metrics: list[Any] = []
        self.resource: dict[str, Any] = {}

    def take(self, path: str, headers: Any, body: bytes) -> tuple[int, bytes]:
        """Store the spans or metrics of a request."""
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
            ExportMetricsServiceRequest,
        )
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        if path == "/v1/traces":
            for spans in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resource = values(spans.resource)
                self.spans += [span for scope in spans.scope_spans for span in scope.spans]
        elif path == "/v1/metrics":
            for metrics in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.metrics += [one for scope in metrics.scope_metrics for one in scope.metrics]
        else:
            return 404, b""
        return 200, b""

    def histograms(self, name: str) -> list[Any]:
        """The points of a histogram, as it was exported last."""
        named = [metric for metric in self.metrics if metric.name == name]
        return list(named[-1].histogram.data_points) if named else []


def values(record: Any) -> dict[str, Any]:
    """The attributes of a log record or a resource."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in record.attributes}
