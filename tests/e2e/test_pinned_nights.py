"""Baselines as a run finds them: a pinned run and a promoted build, from logs to message."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.comparison import save_gate
from ragmetrics.config import Settings
from ragmetrics.pipeline import NightResult, run_night
from ragmetrics.records import Finding, Gate, JudgeInfo, Source
from ragmetrics.storage import open_store
from tests.builders import night_settings
from tests.fakes.formats import terminal_text
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

DAYS = [NIGHT - timedelta(ago) for ago in (2, 1, 0)]


def settings(folder: Path, versus: str) -> Settings:
    """One rule on recall."""
    rules = [{"metric": "context_recall", "max_drop": 0.05, "versus": versus}]
    return night_settings(folder, rules=rules)


def log(folder: Path, *nights: tuple[float, str]) -> None:
    """Nights of forty rows: the share that has the answer, and the build that served."""
    for day, (good, build) in zip(DAYS, nights, strict=True):
        rows = make_rows(40, good=good, night=day, index_build=build)
        write_jsonl(folder / "logs" / f"dt={day}" / "rows.jsonl", rows)


def recall(result: NightResult) -> Finding:
    """What the rule says of a night."""
    (found,) = [finding for finding in result.manifest.findings if finding.kind == "metric"]
    return found


def promote(chosen: Settings, build: str, serving: str) -> None:
    """The verdict of a gate before the first night."""
    moment = datetime.combine(DAYS[0], time(1), UTC)
    more: dict[str, Any] = {"verdict": "promote", "reasons": [], "logs": "builds"}
    gate = Gate(
        **more,
        dataset=chosen.dataset,
        build=build,
        serving=serving,
        judge=JudgeInfo(name="lexical", fingerprint="f"),
        source=Source(logs="builds", files=1, rows=40),
        started_at=moment,
        finished_at=moment,
    )
    save_gate(open_store(chosen), gate)


def test_a_slow_decline_is_a_drop_against_the_pinned_run(tmp_path: Path) -> None:
    """The night before was poor already; the release was not."""
    log(tmp_path, (1.0, "b1"), (0.75, "b1"), (0.75, "b1"))
    release = run_night(settings(tmp_path, "previous"), DAYS[0]).manifest.run
    chosen = settings(tmp_path, f"pinned:{release}")
    found = [recall(run_night(chosen, day)) for day in DAYS[1:]]
    assert [(one.state, one.level) for one in found] == [("firing", "breach")] * 2
    assert found[1].baseline_label == f"run {release} of {DAYS[0]}"
    assert found[1].drop == pytest.approx(0.25)


def test_a_run_that_nobody_has_is_told_as_no_data(tmp_path: Path) -> None:
    """In a message of its own, with the way to mend it."""
    log(tmp_path, (1.0, "b1"), (1.0, "b1"), (1.0, "b1"))
    result = run_night(settings(tmp_path, "pinned:0123456789"), DAYS[0])
    assert recall(result).level == "no_data"
    assert result.delivery.message is not None
    assert "no run 0123456789 in the store" in terminal_text(result.delivery.message)


def test_a_build_that_nobody_promoted_is_held_against_the_one_that_serves(tmp_path: Path) -> None:
    """It answers since last night, and worse: it fires on both nights, and is named."""
    log(tmp_path, (1.0, "b1"), (0.75, "b2"), (0.75, "b2"))
    chosen = settings(tmp_path, "serving")
    promote(chosen, "b1", serving="b0")
    found = [recall(run_night(chosen, day)) for day in DAYS]
    assert [one.state for one in found] == ["ok", "firing", "firing"]
    assert {one.baseline_label for one in found[1:]} == {"index build b1"}
    (build,) = [one for one in found[1].carriers or () if one.tag == "index_build"]
    assert (str(build), build.share) == ("new index build b2", pytest.approx(1.0))
