"""Sending to a target that fails, refuses, or does not confirm."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragmetrics.delivery import send_waiting, waiting
from ragmetrics.delivery.write_back.targets.langfuse import Langfuse
from ragmetrics.pipeline import Night, send_scores
from ragmetrics.records import Score
from ragmetrics.storage import open_store
from tests.fakes.tracing import (
    SECRET,
    LangfuseServer,
    OtlpReceiver,
    PhoenixApi,
    TracingServer,
)
from tests.fakes.written_back import (
    METRIC,
    a_night,
    publish,
    send,
    settings_of,
    to_langfuse,
    traced_row,
)

pytestmark = pytest.mark.process


PAGE = (200, "text/html", b"<html><title>Sign in</title></html>")
QUOTA = (200, "application/json", b'{"error": "quota exceeded"}')
EMPTY = (200, "application/json", b"")
TARGETS: dict[str, tuple[type[TracingServer], dict[str, str], str]] = {
    "scores": (LangfuseServer, {"api": "scores"}, "langfuse"),
    "ingestion": (LangfuseServer, {"api": "ingestion"}, "langfuse"),
    "phoenix": (PhoenixApi, {}, "phoenix"),
    "otlp": (OtlpReceiver, {}, "otlp"),
}
UNCONFIRMED = [
    *((name, instead) for name in TARGETS for instead in (PAGE, QUOTA, EMPTY)),
    ("scores", (202, "application/json", b'{"message": "Queued"}')),
    ("scores", (207, "application/json", b'{"accepted": 1, "rejected": 0, "errors": []}')),
    ("scores", (207, "application/json", b'{"accepted": 11, "rejected": -1, "errors": []}')),
    ("phoenix", (200, "application/json", b'{"data": []}')),
    ("phoenix", (200, "application/json", b'{"data": [{"id": "1"}]}')),
    ("otlp", (200, "application/x-protobuf", b"\x0a\x0b\x08" + b"\xff" * 9 + b"\x01")),
    ("otlp", (204, "text/html", b"")),
]


def test_a_target_that_fails_at_close_costs_only_itself(
    tmp_path: Path,
    langfuse: LangfuseServer,
    receiver: OtlpReceiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its scores are there, the other target has its own, and the run goes on."""
    monkeypatch.setattr(Langfuse, "close", lambda self: 1 / 0)
    targets = {"langfuse": {"base_url": langfuse.url}, "otlp": {"endpoint": receiver.url}}
    settings = settings_of(tmp_path, **targets)
    manifest = publish(settings, {METRIC: lambda number: Score(0.5)}, [traced_row(0)])
    reports = Night(settings).write_back(manifest)
    assert [(one.target, one.sent, one.problem) for one in reports] == [
        ("langfuse", 1, ""),
        ("otlp", 1, ""),
    ]
    assert "the target langfuse cannot be closed: ZeroDivisionError" in caplog.text


def test_scores_survive_a_server_that_fails_for_a_while(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """20,000 scores; the server fails for two minutes on a clock that runs a thousand times faster
    (pauses of 1, 2, 4, 8, 16, 32, 32 and 32 ms), and twice stores a batch without an answer. All
    are there once, in one run.
    """
    settings = to_langfuse(tmp_path, langfuse)
    rows = [traced_row(number) for number in range(5_000)]
    metrics = [METRIC, "context_relevance", "mrr", "hit_rate"]
    manifest = publish(settings, {name: lambda n: Score(n / 5_000) for name in metrics}, rows)
    langfuse.statuses = [200] * 30 + [503, 429, 500, 502] * 2
    langfuse.mute = 2
    report = send(settings, manifest)
    assert (report.sent, report.problem) == (20_000, "")
    assert len(langfuse.scores) == 20_000
    assert langfuse.requests == 100 + 8 + 2
    assert {score["observationId"] for score in langfuse.scores.values()} == {
        row.span_id for row in rows
    }


def test_a_missing_key_keeps_the_night_and_names_the_variable(
    tmp_path: Path, langfuse: LangfuseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the key, the command sends what waits."""
    settings = to_langfuse(tmp_path, langfuse)
    monkeypatch.delenv("LANGFUSE_SECRET_KEY")
    report = send(settings, a_night(settings))
    assert report.problem == "the environment variable LANGFUSE_SECRET_KEY is not set"
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", SECRET)
    [sent] = send_scores(settings)
    assert (sent.sent, send_scores(settings)) == (10, [])


def test_a_wrong_key_is_not_tried_twice_and_is_never_shown(
    tmp_path: Path, langfuse: LangfuseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server repeats the header; the report does not."""
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-wrong-0815")
    settings = to_langfuse(tmp_path, langfuse)
    report = send(settings, a_night(settings))
    assert langfuse.requests == 1
    assert "answered 401" in report.problem
    assert "***" in report.problem
    assert "0815" not in report.problem


def test_no_target_delays_another(
    tmp_path: Path, langfuse: LangfuseServer, receiver: OtlpReceiver
) -> None:
    """One is down, the other gets everything."""
    target = {"base_url": langfuse.url}
    settings = settings_of(
        tmp_path, langfuse=target, otlp={"endpoint": receiver.url}, retry_seconds=0
    )
    langfuse.statuses = [503]
    one, two = Night(settings).write_back(a_night(settings))
    assert (one.target, one.sent, one.waiting) == ("langfuse", 0, 10)
    assert (two.target, two.sent, two.problem) == ("otlp", 10, "")
    assert [kept.target for kept in waiting(open_store(settings))] == ["langfuse"]


def test_a_target_that_refuses_everything_is_taken_for_a_wrong_setting(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """The night waits, as with a wrong key, and no score is marked as refused."""
    settings = to_langfuse(tmp_path, langfuse, batch_size=4)
    langfuse.refused = {METRIC}
    report = send(settings, a_night(settings))
    assert "every score is refused" in report.problem
    assert (report.refused, report.waiting) == (0, 10)


@pytest.mark.parametrize(("name", "instead"), UNCONFIRMED)
def test_what_a_tool_did_not_confirm_in_its_form_waits(
    tmp_path: Path, name: str, instead: tuple[int, str, bytes]
) -> None:
    """A login page, an error with status 200, an empty body, other counts than were sent: nothing
    is stored, so nothing is confirmed, and the next night sends it."""
    kind, more, key = TARGETS[name]
    with kind().running() as server:
        address = {"endpoint" if key == "otlp" else "base_url": server.url}
        settings = settings_of(tmp_path, **{key: {**address, **more}})
        server.instead = instead
        manifest = a_night(settings)
        report = send(settings, manifest)
        assert (report.sent, report.waiting) == (0, 10), str(report)
        assert report.problem
        server.instead = None
        if isinstance(server, PhoenixApi):
            server.spans = {f"{number + 1:016x}" for number in range(10)}
        [later] = send_waiting(settings, open_store(settings))
        assert (later.sent, later.before, later.problem) == (10, 0, "")
