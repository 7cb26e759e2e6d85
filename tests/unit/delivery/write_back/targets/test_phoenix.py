"""Phoenix takes a score when it has the span, and says which spans it lacks."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from ragmetrics.delivery import WriteBackReport, queue_night, send_waiting, waiting
from ragmetrics.delivery.write_back.targets.phoenix import missing_spans
from ragmetrics.storage import open_store
from tests.fakes.tracing import (
    PhoenixApi,
)
from tests.fakes.written_back import (
    a_night,
    send,
    settings_of,
)

pytestmark = pytest.mark.process


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
