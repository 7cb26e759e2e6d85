"""Sampled nights: few rows are paid for, what fell is found all the same, and the report says what
all rows would have cost.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import Settings
from ragmetrics.pipeline import run_night
from ragmetrics.records import Finding, Manifest, Summary
from ragmetrics.scoring.sampling.plan import load_sample
from ragmetrics.storage import RunRef, open_store
from tests.builders import judge_at, night_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

pytestmark = pytest.mark.usefixtures("without_pages")

RECALL = "context_recall"
PRICES = {"usd_per_million_prompt_tokens": 0.4, "usd_per_million_completion_tokens": 1.6}
RULE = {"metric": RECALL, "max_drop": 0.1, "versus": "previous"}


@pytest.fixture
def sampled(tmp_path: Path, judge_server: JudgeServer) -> Callable[..., Settings]:
    """Settings of nights whose judge is asked about a sample."""

    def settings(**sample: Any) -> Settings:
        return night_settings(
            tmp_path,
            metrics=["context_relevance", RECALL],
            judge=judge_at(judge_server) | PRICES,
            shards=3,
            rules=[RULE],
            sample=sample,
        )

    return settings


def log(folder: Path, day: int, rows: list[dict[str, Any]], name: str = "a") -> None:
    """Write rows of a night, so many days after the first; their ids are of that night alone."""
    of_night = [row | {"id": f"{day}-{row['id']}"} for row in rows]
    date = NIGHT + timedelta(day)
    write_jsonl(folder / "logs" / f"dt={date}" / f"{name}.jsonl", of_night)


def recall(manifest: Manifest) -> Summary:
    """The metric that the rule watches."""
    found = manifest.summary(RECALL)
    assert found is not None
    return found


def of_rule(manifest: Manifest) -> Finding:
    """What the rule says."""
    (found,) = [finding for finding in manifest.findings if finding.kind == "metric"]
    return found


@pytest.mark.pages
def test_a_drop_is_found_by_the_questions_that_were_judged_on_both_nights(
    sampled: Callable[..., Settings], tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Eighty of 400 rows are judged each night, of the same questions whatever their ids."""
    settings = sampled(rows=80, strata=["channel"])
    shares = (0.9, 0.9, 0.5)
    found = []
    for day, good in enumerate(shares):
        log(tmp_path, day, make_rows(400, good=good, night=NIGHT + timedelta(day)))
        found.append(run_night(settings, NIGHT + timedelta(day)).manifest)
    assert [of_rule(one).state for one in found] == ["ok", "ok", "firing"]
    assert "over the same 80 questions" in of_rule(found[2]).message
    for manifest, good in zip(found, shares, strict=True):
        assert recall(manifest).status == {"scored": 80, "not_sampled": 320}
        assert recall(manifest).mean == pytest.approx(good, abs=0.02)
    page = (tmp_path / f"store/dashboard/{NIGHT}/index.html").read_text()
    assert "80 of 400 rows judged, the others by the lexical judge alone" in page
    assert "all rows would have cost about" in page
    report = found[0].sample
    assert report is not None
    assert report.whole is not None
    assert report.spent == found[0].usage
    assert report.whole.requests == 5 * report.spent.requests
    sent = judge_server.stats()["by_path"]["/v1/chat/completions"]
    assert sent == sum(one.usage.requests for one in found)


def test_a_half_width_is_planned_by_the_nights_before(
    sampled: Callable[..., Settings], tmp_path: Path
) -> None:
    """The first night judges as many rows as any scores may need, the next as many as these do."""
    settings = sampled(half_width=0.05)
    found = []
    for day in range(2):
        log(tmp_path, day, make_rows(600, good=0.85, night=NIGHT + timedelta(day)))
        found.append(recall(run_night(settings, NIGHT + timedelta(day)).manifest))
    first, second = found
    assert 380 < first.scored < 400
    assert second.scored < 0.5 * first.scored
    for summary in found:
        assert summary.low is not None
        assert summary.high is not None
        assert (summary.high - summary.low) / 2 < 0.06


def test_late_rows_leave_the_sample_as_it_was(
    sampled: Callable[..., Settings], tmp_path: Path, judge_server: JudgeServer
) -> None:
    """A late file makes another run; but for a few rows at its border it has the same sample, and
    asks for nothing that is known.
    """
    settings = sampled(rows=60)
    rows = make_rows(300, good=0.8)
    log(tmp_path, 0, rows[:290])
    first = run_night(settings, NIGHT).manifest
    asked = judge_server.stats()["requests"]
    log(tmp_path, 0, rows[290:], name="late")
    second = run_night(settings, NIGHT).manifest
    assert second.run != first.run
    assert recall(second).scored == 60
    files = open_store(settings)
    plans = [load_sample(files, RunRef.of(one)) for one in (first, second)]
    marks = [set(plan.groups[0].marks or ()) for plan in plans if plan]
    assert len(marks[0] & marks[1]) >= 50
    assert judge_server.stats()["requests"] - asked <= 10 * 3
