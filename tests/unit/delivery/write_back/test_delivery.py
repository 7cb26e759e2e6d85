"""Write-back: what a tracing tool gets of a night, and what becomes of it when the tool fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ragmetrics.config import Settings
from ragmetrics.delivery import WriteBackReport, queue_night, send_waiting, waiting
from ragmetrics.delivery.write_back.targets.langfuse import Langfuse
from ragmetrics.delivery.write_back.targets.phoenix import missing_spans
from ragmetrics.errors import InputError, SettingsError
from ragmetrics.pipeline import Night, examine, send_scores
from ragmetrics.records import Manifest, Score, Status
from ragmetrics.scoring.settings_snapshot import public_settings
from ragmetrics.storage import RunRef, open_store
from tests.fakes.nights import night
from tests.fakes.tracing import (
    KEYS,
    SECRET,
    LangfuseServer,
    OtlpReceiver,
    PhoenixApi,
    TracingServer,
    values,
)
from tests.fakes.written_back import publish, settings_of, traced_row

pytestmark = pytest.mark.process

METRIC = "context_recall"


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def langfuse() -> Iterator[LangfuseServer]:
    """A Langfuse that takes every score of its schema."""
    with LangfuseServer().running() as server:
        yield server


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    """A receiver of OpenTelemetry's logs."""
    with OtlpReceiver().running() as server:
        yield server


def to_langfuse(folder: Path, server: LangfuseServer, **more: Any) -> Settings:
    """Settings with a Langfuse as the only target."""
    target = {"base_url": server.url, **more.pop("langfuse", {})}
    return settings_of(folder, langfuse=target, **more)


def a_night(settings: Settings, rows: int = 10, **change: Any) -> Manifest:
    """A published night; the score of a row is its number over 100."""
    scores = {METRIC: lambda number: Score(number / 100)}
    return publish(settings, scores, [traced_row(number) for number in range(rows)], **change)


def send(settings: Settings, manifest: Manifest) -> WriteBackReport:
    """Write a night back to its only target."""
    [report] = Night(settings).write_back(manifest)
    return report


@pytest.mark.parametrize("api", ["scores", "ingestion"])
def test_langfuse_gets_each_score_with_where_it_comes_from(
    tmp_path: Path, langfuse: LangfuseServer, api: str
) -> None:
    """Value, trace, observation, and as metadata interval, status, judge, fingerprint and run."""
    settings = to_langfuse(tmp_path, langfuse, langfuse={"api": api}, batch_size=4)
    panel = Score(0.25, votes=(0.0, 0.5), reason="two of eight")
    publish_one = {METRIC: lambda number: panel}
    manifest = publish(settings, publish_one, [traced_row(number) for number in range(10)])
    report = send(settings, manifest)
    assert (report.sent, report.problem, langfuse.requests) == (10, "", 3)
    assert set(langfuse.paths) == {f"/api/public/{api}"}
    stored = {score["observationId"]: score for score in langfuse.scores.values()}
    assert len(stored) == 10
    one = stored[f"{3:016x}"]
    assert (one["traceId"], one["name"], one["value"]) == (f"{3:032x}", METRIC, 0.25)
    assert (one["dataType"], one["comment"]) == ("NUMERIC", "two of eight")
    assert one["metadata"] == {
        "status": "scored",
        "metric": METRIC,
        "judge": "lexical",
        "fingerprint": f"{METRIC}-lexical",
        "dataset": "helpdesk",
        "night": "2026-11-10",
        "run": "run-0",
        "row": "row-2",
        "ragmetrics": "0.1.0",
        "night_mean": 0.5,
        "night_mean_low": pytest.approx(0.47),
        "night_mean_high": pytest.approx(0.53),
        "votes": [0.0, 0.5],
        "votes_low": 0.0,
        "votes_high": 0.5,
    }


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


def test_a_missing_value_is_a_category_with_its_reason(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """Skipped or failed, never 0; a row of a part that was never written failed too."""
    kinds = [
        Score(0.0),
        Score.not_applicable("no reference answer"),
        Score(None, "timed out", status=Status.JUDGE_FAILED),
        Score(None, status=Status.NOT_SAMPLED),
    ]
    scores = {METRIC: lambda number: kinds[number], "context_relevance": lambda number: None}
    settings = to_langfuse(tmp_path, langfuse)
    manifest = publish(settings, scores, [traced_row(number) for number in range(4)])
    assert send(settings, manifest).sent == 8
    found = {(one["name"], one["observationId"][-1]): one for one in langfuse.scores.values()}
    told = [found[METRIC, str(number)] for number in range(1, 5)]
    assert [one["value"] for one in told] == [0.0, "skipped", "failed", "skipped"]
    assert [one.get("comment") for one in told[1:3]] == ["no reference answer", "timed out"]
    assert told[2]["metadata"]["status"] == "judge_failed"
    assert found["context_relevance", "1"]["value"] == "failed"


def test_only_chosen_metrics_and_statuses_are_sent(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """`metrics` and `statuses` of the settings."""
    settings = to_langfuse(tmp_path, langfuse, metrics=["mrr"], statuses=["scored"])
    kinds = [Score(1.0), Score.not_applicable("no ids")]
    scores = {METRIC: lambda number: kinds[number], "mrr": lambda number: kinds[number]}
    manifest = publish(settings, scores, [traced_row(0), traced_row(1)])
    assert send(settings, manifest).sent == 1
    [one] = langfuse.scores.values()
    assert (one["name"], "judge" in one["metadata"]) == ("mrr", False)


def test_redacted_settings_send_no_reasons(tmp_path: Path, langfuse: LangfuseServer) -> None:
    """The words of judges may repeat the question."""
    settings = to_langfuse(tmp_path, langfuse).model_copy(update={"redact": True})
    manifest = publish(settings, {METRIC: lambda _: Score(1.0, "a secret")}, [traced_row(0)])
    assert send(settings, manifest).sent == 1
    assert "secret" not in json.dumps(list(langfuse.scores.values()))


def test_a_repeated_night_changes_nothing_and_sends_nothing(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """The digests of what was sent are in the store."""
    settings = to_langfuse(tmp_path, langfuse)
    manifest = a_night(settings)
    assert send(settings, manifest).sent == 10
    again = send(settings, manifest)
    assert (again.sent, again.before, langfuse.requests) == (0, 10, 1)
    assert waiting(open_store(settings)) == []


def test_a_night_that_is_scored_again_replaces_its_scores(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """By the same ids: a failure becomes a value in place, and only what changed is sent."""
    settings = to_langfuse(tmp_path, langfuse)
    failed = Score(None, "timed out", status=Status.JUDGE_FAILED)
    first = {METRIC: lambda number: failed if number < 3 else Score(0.5)}
    rows = [traced_row(number) for number in range(10)]
    send(settings, publish(settings, first, rows))
    second = publish(
        settings,
        {METRIC: lambda _: Score(0.5)},
        rows,
        run="run-0-2",
        finished_at=night().finished_at + timedelta(hours=1),
    )
    assert send(settings, second).sent == 3
    assert [score["value"] for score in langfuse.scores.values()] == [0.5] * 10


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


def test_a_target_that_stays_down_leaves_the_rest_for_the_next_night(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """The night does not fail; what was taken is not sent again; the oldest night goes first."""
    settings = to_langfuse(tmp_path, langfuse, batch_size=2, retry_seconds=0.0)
    first = a_night(settings)
    langfuse.statuses = [200, 200, 503]
    report = send(settings, first)
    assert (report.sent, report.waiting) == (4, 6)
    assert "answered 503: told to fail" in report.problem
    [kept] = waiting(open_store(settings))
    assert (kept.night, kept.waiting, kept.problem) == (first.date, 6, report.problem)
    other = a_night(settings, date=first.date + timedelta(1), run="run-1", dataset="other")
    one, two = Night(settings).write_back(other)
    assert (one.night, one.sent, one.before, two.night, two.sent) == (
        first.date,
        6,
        4,
        other.date,
        10,
    )
    assert len(langfuse.scores) == 20
    assert waiting(open_store(settings)) == []


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


@pytest.mark.parametrize("api", ["scores", "ingestion"])
def test_a_refused_score_costs_no_other(tmp_path: Path, langfuse: LangfuseServer, api: str) -> None:
    """Also where the server does not say which one; nights do not repeat it, the command does."""
    settings = to_langfuse(tmp_path, langfuse, langfuse={"api": api})
    rows = [traced_row(number) for number in range(8)]
    scores = {METRIC: lambda number: Score(0.5), "mrr": lambda number: Score(0.1)}
    manifest = publish(settings, scores, rows)
    langfuse.refused = {"mrr"}
    report = send(settings, manifest)
    assert (report.sent, report.refused, report.problem) == (8, 8, "")
    assert "out of range" in report.refusal
    assert send(settings, manifest).before == 16
    langfuse.refused = set()
    [again] = send_scores(settings, manifest.date)
    assert (again.sent, again.before, len(langfuse.scores)) == (8, 8, 16)


def test_a_target_that_refuses_everything_is_taken_for_a_wrong_setting(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """The night waits, as with a wrong key, and no score is marked as refused."""
    settings = to_langfuse(tmp_path, langfuse, batch_size=4)
    langfuse.refused = {METRIC}
    report = send(settings, a_night(settings))
    assert "every score is refused" in report.problem
    assert (report.refused, report.waiting) == (0, 10)


def test_rows_without_a_trace_are_counted(tmp_path: Path, langfuse: LangfuseServer) -> None:
    """A score without its trace has nowhere to go. Tags may have the ids."""
    settings = to_langfuse(tmp_path, langfuse)
    rows = [
        traced_row(0),
        traced_row(1, trace_id=None, span_id=None),
        traced_row(2, trace_id=None),
        traced_row(3, trace_id=None, span_id=None, tags={"trace_id": "t-4", "span_id": "s-4"}),
    ]
    report = send(settings, publish(settings, {METRIC: lambda _: Score(1.0)}, rows))
    assert report.sent == 2
    assert report.unfit == {
        "the row has no trace id": 1,
        "rows without a trace id or a span id": 1,
    }
    assert "t-4" in {score["traceId"] for score in langfuse.scores.values()}


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


def test_langfuse_may_fail_an_event_among_its_successes(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """The status counts, and not the list; ids that were not sent count nowhere."""
    settings = to_langfuse(tmp_path, langfuse, langfuse={"api": "ingestion"}, retry_seconds=0)
    said = {"successes": [{"id": "other", "status": 201}], "errors": [{"id": "x", "status": 400}]}
    langfuse.instead = (207, "application/json", json.dumps(said).encode())
    report = send(settings, a_night(settings))
    assert (report.sent, report.refused, report.waiting) == (0, 0, 10)
    assert "does not name the score" in report.problem


def test_a_score_waits_a_day_for_its_span(tmp_path: Path) -> None:
    """Tools take spans in batches: the missing ones are tried again, then refused; others are sent
    at once, and a later night is not held up."""
    with PhoenixApi(f"{number + 1:016x}" for number in range(8)).running() as server:
        settings = settings_of(tmp_path, phoenix={"base_url": server.url}, batch_size=4)
        files, manifest = open_store(settings), a_night(settings)
        began = manifest.finished_at
        queue_night(settings, files, manifest)

        def later(hours: float) -> WriteBackReport:
            [report] = send_waiting(settings, files, now=began + timedelta(hours=hours))
            return report

        first = later(0)
        assert (first.sent, first.early, first.refused, first.problem) == (8, 2, 0, "")
        assert "2 wait for spans that the tool does not have yet" in str(first)
        server.spans.add(f"{9:016x}")
        second = later(23)
        assert (second.sent, second.before, second.early) == (1, 8, 1)
        queue_night(settings, files, manifest)  # a repeated night begins no new day
        third = later(25)
        assert (third.before, third.refused, third.early) == (9, 1, 0)
        assert third.refusal == "the span does not exist there"
        assert waiting(files) == []


def test_a_404_of_another_path_is_a_problem_at_once(tmp_path: Path) -> None:
    """It names no span that was sent: the address is wrong, or a proxy answers."""
    with PhoenixApi().running() as server:
        settings = settings_of(tmp_path, phoenix={"base_url": f"{server.url}/wrong"})
        report = send(settings, a_night(settings))
        assert (report.waiting, report.early) == (10, 0)
        assert "answered 404" in report.problem


def test_a_long_404_takes_linear_time() -> None:
    """A body that begins like the list of missing spans over and over: each sign is read once."""
    many = "Spans with IDs " * 16_000
    assert missing_spans(many) == {("Spans with IDs " * 15_999).strip()}
    assert missing_spans("Spans with IDs a, b do not exist.") == {"a", "b"}
    assert missing_spans("Spans with IDs a, b") == {"a", "b"}  # the rest was cut off
    assert missing_spans("no span") == set()


def test_a_replaced_run_is_not_sent(tmp_path: Path, langfuse: LangfuseServer) -> None:
    """Its night's newer run has its own place in the outbox."""
    settings = to_langfuse(tmp_path, langfuse)
    old = a_night(settings)
    queue_night(settings, open_store(settings), old)
    later = old.finished_at + timedelta(hours=1)
    new = a_night(settings, run="run-0-2", finished_at=later)
    [report] = Night(settings).write_back(new)
    assert report.sent == 10
    assert {score["metadata"]["run"] for score in langfuse.scores.values()} == {"run-0-2"}
    assert Night(settings).write_back(old) == ()


def test_a_damaged_manifest_does_not_drop_a_waiting_night(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """It waits with the reason, and is sent when the manifest is written again."""
    settings = to_langfuse(tmp_path, langfuse)
    manifest, files = a_night(settings), open_store(settings)
    queue_night(settings, files, manifest)
    path = RunRef.of(manifest).manifest
    whole = files.read(path)
    files.write(path, b"{")
    [report] = send_waiting(settings, files)
    assert (report.sent, len(waiting(files))) == (0, 1)
    assert "cannot be read: its scores wait" in report.problem
    files.write(path, whole)
    [report] = send_waiting(settings, files)
    assert (report.sent, waiting(files)) == (10, [])


def test_a_night_is_given_up_after_two_weeks(tmp_path: Path, langfuse: LangfuseServer) -> None:
    """It is kept for people; a target that left the settings is forgotten at once."""
    settings = to_langfuse(tmp_path, langfuse, retry_seconds=0)
    langfuse.statuses = [503] * 2
    manifest = a_night(settings)
    send(settings, manifest)
    files = open_store(settings)
    assert send_waiting(settings, files, newest=manifest.date + timedelta(14)) == []
    assert (waiting(files), len(files.below("write-back/given-up"))) == ([], 1)
    queue_night(settings, files, manifest)
    without = settings_of(tmp_path, otlp={"endpoint": "http://127.0.0.1:9"})
    assert send_waiting(without, files) == []
    assert waiting(files) == []


def test_rows_that_are_gone_are_a_problem_and_no_crash(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """`prune` removed them."""
    settings = to_langfuse(tmp_path, langfuse)
    manifest = a_night(settings)
    for info in open_store(settings).below("rows"):
        open_store(settings).remove(info.path)
    assert "the rows of the night are gone" in send(settings, manifest).problem


@pytest.mark.parametrize(
    "write_back",
    [
        {},
        {"langfuse": {"base_url": "https://user:pass@langfuse.example.com"}},
        {"phoenix": {"base_url": "http://p.example.com", "api_key_env": "not a name"}},
        {"otlp": {"endpoint": "http://c.example.com", "headers_env": {"x": "no variable"}}},
        {"langfuse": {}, "statuses": []},
    ],
)
def test_bad_settings_are_explained(tmp_path: Path, write_back: dict[str, Any]) -> None:
    """No target, a secret in an address, a key in place of its variable."""
    with pytest.raises(SettingsError, match="write_back"):
        settings_of(tmp_path, **write_back)


def test_the_stored_settings_show_where_scores_go() -> None:
    """They contain names of variables, and no key."""
    shown = public_settings(settings_of(Path("x"), langfuse={}))
    assert shown["write_back"]["langfuse"] == {}


def test_the_command_asks_for_a_target_and_a_night(
    tmp_path: Path, langfuse: LangfuseServer
) -> None:
    """Without `write_back:`, for an unknown target and for a night that is not there."""
    settings = to_langfuse(tmp_path, langfuse)
    manifest = a_night(settings)
    with pytest.raises(InputError, match="no `write_back:`"):
        send_scores(settings.model_copy(update={"write_back": None}))
    with pytest.raises(InputError, match="the targets are: langfuse"):
        send_scores(settings, target="phoenix")
    with pytest.raises(InputError, match="is not published"):
        send_scores(settings, manifest.date + timedelta(1))


def test_rows_of_an_older_version_have_no_ids(tmp_path: Path, langfuse: LangfuseServer) -> None:
    """Their parts lack the columns: that is counted, and no error."""
    settings = to_langfuse(tmp_path, langfuse)
    manifest = a_night(settings)
    path = tmp_path / "store" / RunRef.of(manifest).rows(0)
    pq.write_table(pq.read_table(path).drop_columns(["trace_id", "span_id"]), path)
    report = send(settings, manifest)
    assert (report.sent, report.unfit) == (0, {"rows without a trace id or a span id": 10})


def test_the_doctor_names_a_missing_key_and_what_waits(
    tmp_path: Path, langfuse: LangfuseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As warnings, because a night works without its tracing tools."""
    settings = to_langfuse(tmp_path, langfuse, retry_seconds=0)

    def told() -> tuple[str, str]:
        checks = examine(settings, night().date)
        [found] = [check for check in checks if check.name == "write-back to langfuse"]
        return found.state, found.text

    manifest = a_night(settings)
    assert told() == ("ok", "the settings are complete; nothing waits")
    langfuse.statuses = [503]
    send(settings, manifest)
    assert told()[0] == "warning"
    assert "1 night to be sent" in told()[1]
    monkeypatch.delenv("LANGFUSE_PUBLIC_KEY")
    assert "LANGFUSE_PUBLIC_KEY is not set" in told()[1]
