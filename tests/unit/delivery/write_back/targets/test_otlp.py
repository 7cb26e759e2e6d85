"""What a receiver of OpenTelemetry's logs gets of a night."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragmetrics.records import Score, Status
from tests.fakes.tracing import (
    OtlpReceiver,
    values,
)
from tests.fakes.written_back import (
    METRIC,
    a_night,
    publish,
    send,
    settings_of,
    traced_row,
)

pytestmark = pytest.mark.process


def test_an_otlp_receiver_gets_evaluation_events(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """`gen_ai.evaluation.result` with the span of the row, by the GenAI conventions."""
    settings = settings_of(tmp_path, otlp={"endpoint": receiver.url})
    kinds = [Score(0.75, "three of four"), Score(None, "timed out", status=Status.JUDGE_FAILED)]
    rows = [traced_row(0), traced_row(1, trace_id="0x" + f"{2:032X}")]
    manifest = publish(settings, {METRIC: lambda number: kinds[number]}, rows)
    assert send(settings, manifest).sent == 2
    scored, failed = receiver.records
    assert scored.event_name == "gen_ai.evaluation.result"
    assert (scored.trace_id.hex(), scored.span_id.hex()) == (f"{1:032x}", f"{1:016x}")
    assert failed.trace_id.hex() == f"{2:032x}"
    assert scored.time_unix_nano == int(rows[0].timestamp.timestamp()) * 10**9  # type: ignore[union-attr]
    known = values(scored)
    assert known["gen_ai.evaluation.name"] == METRIC
    assert known["gen_ai.evaluation.score.value"] == 0.75
    assert known["gen_ai.evaluation.explanation"] == "three of four"
    assert known["ragmetrics.fingerprint"] == f"{METRIC}-lexical"
    assert known["ragmetrics.run"] == "run-0"
    assert "gen_ai.evaluation.score.label" not in known
    other = values(failed)
    assert "gen_ai.evaluation.score.value" not in other
    assert (other["gen_ai.evaluation.score.label"], other["error.type"]) == (
        "failed",
        "judge_failed",
    )
    assert other["log.record.uid"] != known["log.record.uid"]


def test_an_event_that_was_sent_twice_has_one_uid(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """The receiver stored a batch and did not answer: `log.record.uid` tells the repetition."""
    settings = settings_of(tmp_path, otlp={"endpoint": receiver.url}, batch_size=5)
    receiver.mute = 1
    assert send(settings, a_night(settings)).sent == 10
    uids = [values(record)["log.record.uid"] for record in receiver.records]
    assert (len(uids), len(set(uids))) == (15, 10)


def test_otlp_repeats_only_what_the_specification_allows(
    tmp_path: Path, receiver: OtlpReceiver
) -> None:
    """503 is repeated; after 500 the night waits; rejected records are counted, not repeated."""
    settings = settings_of(tmp_path, otlp={"endpoint": f"{receiver.url}/v1/logs"})
    manifest = a_night(settings)
    receiver.statuses = [503, 500]
    assert "answered 500" in send(settings, manifest).problem
    receiver.rejects = 3
    report = send(settings, manifest)
    assert (report.sent, report.refused, report.refusal) == (7, 3, "too many attributes")
    assert receiver.requests == 3
    assert len(receiver.records) == 7


def test_otlp_needs_ids_of_opentelemetry(tmp_path: Path, receiver: OtlpReceiver) -> None:
    """Langfuse's own ids may be of another form."""
    settings = settings_of(tmp_path, otlp={"endpoint": receiver.url})
    rows = [traced_row(0, trace_id="run-1"), traced_row(1, span_id="no-hex")]
    report = send(settings, publish(settings, {METRIC: lambda _: Score(1.0)}, rows))
    assert (report.sent, list(report.unfit.values())) == (1, [1])
    assert receiver.records[0].span_id == b""
