"""How two builds of a gate differ, kept beside the verdict."""

from __future__ import annotations

import logging
from datetime import date
from pathlib import Path

import pytest

from ragmetrics.comparison import load_compared, load_gate, run_gate
from ragmetrics.config import Settings
from ragmetrics.dashboard import refresh_builds
from ragmetrics.errors import StoreError
from ragmetrics.pipeline import run_night
from ragmetrics.records import Gate, IndexBuild
from ragmetrics.storage import Files, open_store
from tests.fakes.build_logs import METRICS, damaged, gate_settings, golden, write_build
from tests.fakes.logs import write_jsonl
from tests.fakes.pages import text

ROWS = golden(60)


def gate(settings: Settings, build: str = "b2") -> Gate:
    """The verdict on a build, against `b1`."""
    return run_gate(settings, IndexBuild(dataset="towers", build=build, serving="b1"))


def test_a_gate_keeps_how_the_builds_differ(tmp_path: Path) -> None:
    """The drops of the verdict, where they are, and the contexts that left; on the build's page."""
    now = damaged(ROWS, 0.3, seed=1)
    write_build(tmp_path, "b1", ROWS)
    write_build(tmp_path, "b2", [*now[:-2], *golden(62)[60:]])
    settings = gate_settings(tmp_path)
    verdict, files = gate(settings), open_store(settings)
    found = load_compared(files, "b2")
    assert found is not None
    drops = {metric.metric: metric.drop for metric in verdict.metrics}
    assert {metric.metric: metric.loss for metric in found.metrics} == pytest.approx(drops)
    assert {str(segment.segment) for segment in found.segments} == {"channel=app", "channel=web"}
    assert (found.lost.questions, found.gained.questions) == (2, 2)
    assert any(one.rank_b is None for row in found.rows for one in row.contexts)
    refresh_builds(files)
    read = text(files.read("dashboard/builds/b2.html").decode())
    for told in ("Hold: 2 of 2 metrics are", "By channel", "− left rank 1", "Only before2"):
        assert told in read, told


def test_a_verdict_is_kept_where_how_the_builds_differ_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build is held, and what could not be written is among its problems."""
    write_build(tmp_path, "b1", ROWS)
    write_build(tmp_path, "b2", damaged(ROWS, 0.3, seed=1))
    settings, really = gate_settings(tmp_path), Files.write

    def write(self: Files, path: str, data: bytes) -> None:
        if path.startswith("gates/compared/"):
            raise StoreError(f"writing {path}: access denied (AccessDenied)")
        really(self, path, data)

    monkeypatch.setattr(Files, "write", write)
    found = gate(settings)
    assert found.verdict == "hold"
    assert "access denied" in found.problems[0]
    assert load_gate(open_store(settings), "b2") == found


def test_a_serving_build_that_is_known_by_its_nights_is_compared_by_them(tmp_path: Path) -> None:
    """Its rows alone, of a night that two builds served."""
    said = [{**row, "index_build": f"b{n % 2}"} for n, row in enumerate(ROWS)]
    settings = gate_settings(tmp_path)
    day = date(2026, 11, 19)
    write_jsonl(Path(settings.logs.replace("{date}", str(day))), said)
    run_night(settings, day)
    write_build(tmp_path, "b2", damaged(ROWS, 0.3, seed=1))
    gate(settings)
    found = load_compared(open_store(settings), "b2")
    assert found is not None
    assert found.a.name == "build b1 (night 2026-11-19)"
    assert (found.a.rows, found.b.rows) == (30, 60)
    assert (found.lost.questions, found.gained.questions) == (0, 30)
    assert [metric.metric for metric in found.metrics] == METRICS


def test_where_nothing_can_be_compared_nothing_is_kept(tmp_path: Path) -> None:
    """Nor what was kept of an earlier log of the same name, which is not what was gated."""
    settings = gate_settings(tmp_path)
    files = open_store(settings)
    write_build(tmp_path, "b1", ROWS)
    log = write_build(tmp_path, "b2", ROWS[:5])
    assert gate(settings).verdict == "inconclusive"
    assert load_compared(files, "b2") is not None
    log.unlink()
    assert gate(settings).verdict == "inconclusive"
    assert load_compared(files, "b2") is None


def test_a_damaged_comparison_costs_the_page_no_more_than_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is left out, and logged by name."""
    files = Files(str(tmp_path))
    files.write("gates/compared/b2.json", b'{"a": 1}')
    with caplog.at_level(logging.ERROR):
        assert load_compared(files, "b2") is None
    assert "gates/compared/b2.json is not a comparison" in caplog.text
