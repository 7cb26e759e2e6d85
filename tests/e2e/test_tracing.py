"""A night's traces and request durations, as a collector of OpenTelemetry receives them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import judge_at, night_values, save_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.prefect_database import write_database
from tests.fakes.processes import ROOT
from tests.fakes.tracing import Collector

pytestmark = pytest.mark.process

ROWS = 24


@pytest.fixture
def collector() -> Iterator[Collector]:
    """It keeps all spans and metrics that it gets."""
    with Collector().running() as server:
        yield server


def run_night(folder: Path, judge: JudgeServer, **environment: str) -> None:
    """One night by hand, in a process of its own."""
    write_jsonl(folder / "logs" / f"dt={NIGHT}" / "log.jsonl", make_rows(ROWS))
    write_database(folder / "home" / "prefect.db")
    path = save_settings(
        folder, night_values(folder, dataset="towers", shards=2, judge=judge_at(judge))
    )
    done = subprocess.run(
        [sys.executable, "-m", "flows.nightly", "--settings", str(path), "--date", str(NIGHT)],
        cwd=ROOT,
        env={**os.environ, "PREFECT_HOME": str(folder / "home"), **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr


def test_a_night_is_a_trace_of_its_stages_and_parts(
    tmp_path: Path, judge_server: JudgeServer, collector: Collector
) -> None:
    """Night over tasks, in one trace, and every request in the histogram."""
    run_night(tmp_path, judge_server, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    spans = {span.name: span for span in collector.spans}
    night = spans[f"nightly {NIGHT}"]
    below = [f"stage · {NIGHT}", f"publish · {NIGHT}"]
    below += [f"context_recall · shard {shard}/2 · {NIGHT}" for shard in (1, 2)]
    for name in below:
        assert spans[name].parent_span_id == night.span_id
        assert spans[name].trace_id == night.trace_id
        assert night.start_time_unix_nano <= spans[name].start_time_unix_nano
        assert spans[name].end_time_unix_nano <= night.end_time_unix_nano
    [durations] = collector.histograms("gen_ai.client.operation.duration")
    assert durations.count == judge_server.stats()["requests"] == ROWS
    assert 0 < durations.sum < 60 * ROWS
    assert collector.resource["service.name"] == "ragmetrics"


def test_without_an_endpoint_nothing_is_sent_and_nothing_imported(tmp_path: Path) -> None:
    """The SDK is not even loaded, though the extra is installed."""
    program = "import flows.nightly, sys; sys.exit('opentelemetry.sdk' in sys.modules)"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, timeout=240)
    assert done.returncode == 0


def test_without_the_extra_a_night_runs_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An endpoint is set, but what would send is not installed: one warning."""
    from tasks.tracing import export

    missing: Any = None
    monkeypatch.setitem(
        sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", missing
    )
    export.cache_clear()
    assert not export()
    assert "the extra `otel`" in caplog.text
    export.cache_clear()
