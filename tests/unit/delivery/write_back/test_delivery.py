"""Write-back of a night: what is sent of it, and what is counted."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ragmetrics.delivery import waiting
from ragmetrics.errors import InputError, SettingsError
from ragmetrics.pipeline import examine, send_scores
from ragmetrics.records import Score, Status
from ragmetrics.scoring.run_summary import public_settings
from ragmetrics.storage import RunRef, open_store
from tests.fakes.nights import night
from tests.fakes.tracing import (
    LangfuseServer,
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
