"""OpenTelemetry: events `gen_ai.evaluation.result`, sent as log records by OTLP over HTTP.

Each event has the trace and span of its row. A receiver of logs adds and never replaces, so an
event also has `log.record.uid`: equal uids are the same event.
Source: the GenAI semantic conventions (in development), and the OTLP specification.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from ragmetrics.config import EnvironmentHeaders, SettingsModel, address, fill_headers
from ragmetrics.delivery.write_back.evaluation_results import EvaluationResult
from ragmetrics.delivery.write_back.target import Outcome, TargetError, TargetKind, target_key
from ragmetrics.delivery.write_back.target_client import TargetClient
from ragmetrics.http import Answer
from ragmetrics.version import __version__, install_extra

if TYPE_CHECKING:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue

EVENT = "gen_ai.evaluation.result"
TRACE_DIGITS, SPAN_DIGITS = 32, 16
_PATH = "/v1/logs"
_TYPE = "application/x-protobuf"
_RETRYABLE = (429, 502, 503, 504)
"""Of the OTLP specification; no other request may be repeated at once."""
_INSTALL = f"write_back: otlp: needs OpenTelemetry: {install_extra('otel')}"


class OtlpSettings(SettingsModel):
    """A receiver of OpenTelemetry logs by OTLP over HTTP."""

    endpoint: Annotated[str, address("http://collector.example.com:4318")]
    """The address without the path `/v1/logs`."""
    headers_env: EnvironmentHeaders = Field(default_factory=dict)
    """Maps a header to the environment variable that holds its value, or to a text with variables
    in braces, such as `Bearer {OTLP_TOKEN}`."""


class Otlp:
    """A receiver of OTLP over HTTP."""

    name = "otlp"
    documents = False

    def __init__(
        self, settings: OtlpSettings, timeout: float, environment: Mapping[str, str]
    ) -> None:
        try:
            import opentelemetry.proto.collector.logs.v1.logs_service_pb2  # noqa: F401
        except ImportError as error:
            raise TargetError(_INSTALL, transient=False) from error
        try:
            headers, secrets = fill_headers(settings.headers_env, environment)
        except ValueError as error:
            raise TargetError(str(error), transient=False) from None
        address = settings.endpoint.removesuffix(_PATH)
        self.key = target_key(self.name, address)
        self._client = TargetClient(
            address, {"Content-Type": _TYPE, **headers}, secrets, timeout, _RETRYABLE
        )

    def unfit(self, result: EvaluationResult) -> str:
        """An event needs a trace id of OpenTelemetry."""
        if hex_id(result.trace_id, TRACE_DIGITS) is None:
            return "the row has no trace id of 32 hexadecimal digits"
        return ""

    def send(self, batch: Sequence[EvaluationResult]) -> Outcome:
        """Send a batch in one request."""
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

        answer = self._client.post(_PATH, export_request(batch).SerializeToString())
        if not _is_otlp(answer):
            raise self._client.unlike(answer, "OTLP")
        try:
            partial = ExportLogsServiceResponse.FromString(answer.body).partial_success
        except DecodeError as error:
            raise self._client.unlike(answer, "OTLP") from error
        if not 0 <= partial.rejected_log_records <= len(batch):
            raise self._client.unlike(answer, "OTLP")
        if not partial.rejected_log_records:
            return Outcome()
        # The specification forbids a repetition, and the answer does not say which ones.
        reason = self._client.shown(partial.error_message) or "rejected without a reason"
        if partial.rejected_log_records == len(batch):
            return Outcome(refused={one.digest: reason for one in batch})
        return Outcome(unnamed=partial.rejected_log_records, reason=reason)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _is_otlp(answer: Answer) -> bool:
    """Whether an answer with status 2xx has the type of OTLP. The message of a full success has no
    bytes, and some receivers leave out the type of nothing.
    """
    kind = answer.headers.get("Content-Type", "" if answer.body else _TYPE)
    return kind.partition(";")[0].strip().lower() == _TYPE


def hex_id(text: str | None, digits: int) -> str | None:
    """An ID of OpenTelemetry in lower case, as logs have it with `0x` or dashes; None if it
    has another number of digits, or is zero.
    """
    bare = (text or "").strip().lower().removeprefix("0x")
    if digits == TRACE_DIGITS:
        bare = bare.replace("-", "")  # some tools use UUIDs
    if re.fullmatch(rf"[0-9a-f]{{{digits}}}", bare) and bare.strip("0"):
        return bare
    return None


def export_request(batch: Sequence[EvaluationResult]) -> ExportLogsServiceRequest:
    """The request with one log record per result, all of one dataset."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
    from opentelemetry.proto.logs.v1.logs_pb2 import (
        LogRecord,
        ResourceLogs,
        ScopeLogs,
        SeverityNumber,
    )
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource

    now = time.time_ns()
    records = [
        LogRecord(
            time_unix_nano=max(0, int(result.timestamp.timestamp() * 1e6) * 1_000),
            observed_time_unix_nano=now,
            severity_number=SeverityNumber.SEVERITY_NUMBER_INFO,
            event_name=EVENT,
            trace_id=bytes.fromhex(hex_id(result.trace_id, TRACE_DIGITS) or ""),
            span_id=bytes.fromhex(hex_id(result.span_id, SPAN_DIGITS) or ""),
            attributes=_pairs(attributes(result)),
        )
        for result in batch
    ]
    about = {"service.name": "ragmetrics", "service.version": __version__}
    scope = InstrumentationScope(name="ragmetrics", version=__version__)
    return ExportLogsServiceRequest(
        resource_logs=[
            ResourceLogs(
                resource=Resource(attributes=_pairs(about)),
                scope_logs=[ScopeLogs(scope=scope, log_records=records)],
            )
        ]
    )


def attributes(result: EvaluationResult) -> dict[str, Any]:
    """The attributes of an event. Those that the conventions do not have begin with
    `ragmetrics.`.
    """
    named = {
        "gen_ai.evaluation.name": result.metric,
        "gen_ai.evaluation.score.value": result.value,
        "gen_ai.evaluation.score.label": None if result.value is not None else result.status,
        "gen_ai.evaluation.explanation": result.reason or None,
        "error.type": result.metadata.get("status") if result.status == "failed" else None,
        "log.record.uid": result.digest,
        "ragmetrics.evaluation.id": result.id,
    }
    known = {name: value for name, value in named.items() if value is not None}
    return known | {f"ragmetrics.{name}": value for name, value in result.metadata.items()}


def _pairs(values: Mapping[str, Any]) -> list[KeyValue]:
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue

    return [KeyValue(key=name, value=_value(value)) for name, value in values.items()]


def _value(value: Any) -> Any:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue

    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[_value(item) for item in value]))
    return AnyValue(string_value=str(value))


_SAMPLE = {"endpoint": "{url}", "headers_env": {"Authorization": "OTLP_TOKEN"}}
otlp = TargetKind("otlp", OtlpSettings, Otlp, _SAMPLE, ("OTLP_TOKEN",))
