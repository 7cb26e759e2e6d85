"""A night whose judge grades everything alike: the canaries and its own verdicts give it away, in
the manifest, in Slack, in the terminal and on every page.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragmetrics.config import Settings
from ragmetrics.pipeline import run_night
from ragmetrics.records import Finding, Manifest
from tests.builders import judge_at, night_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.slack import SlackServer

FAILED = "cannot tell an obvious yes from an obvious no"


@pytest.fixture
def settings(tmp_path: Path, judge_server: JudgeServer) -> Settings:
    """A night of 60 German questions, which a live judge grades."""
    rows = [row | {"language": "de-AT"} for row in make_rows(60)]
    write_jsonl(tmp_path / "logs" / f"dt={NIGHT}" / "a.jsonl", rows)
    return night_settings(
        tmp_path,
        metrics=["context_relevance"],
        judge=judge_at(judge_server),
        shards=2,
        alerts={"checks": {"canaries": 8}},
    )


def of_kind(manifest: Manifest, kind: str) -> Finding:
    """The night's finding of a kind."""
    (finding,) = [one for one in manifest.findings if one.kind == kind]
    return finding


def test_a_judge_that_always_says_1_is_told_everywhere(
    settings: Settings, tmp_path: Path, judge_server: JudgeServer, slack_server: SlackServer
) -> None:
    """Its means look precise; the two findings, the note on the pages and Slack say otherwise."""
    judge_server.faults(grade=1)
    manifest = run_night(settings, NIGHT).manifest
    (report,) = manifest.canaries.values()
    assert (report.language, report.asked, report.right, report.yes) == ("de", 10, 5, 10)
    assert of_kind(manifest, "canaries").level == "breach"
    assert FAILED in of_kind(manifest, "canaries").message
    assert of_kind(manifest, "constant_verdicts").level == "breach"
    assert "verdicts on grade are 1 (100%)" in of_kind(manifest, "constant_verdicts").message
    assert FAILED in json.dumps(slack_server.received)
    pages = [*(tmp_path / "store" / "dashboard" / f"{NIGHT}").rglob("*.html")]
    assert len(pages) > 2
    assert [page.name for page in pages if FAILED not in page.read_text("utf-8")] == []


def test_a_good_judge_is_asked_once_and_then_read_from_the_store(
    settings: Settings, tmp_path: Path, judge_server: JudgeServer
) -> None:
    """The ten replies are cached under an ordinary key: the next night asks nothing of it."""
    first = run_night(settings, NIGHT).manifest
    assert of_kind(first, "canaries").level == of_kind(first, "constant_verdicts").level == "ok"
    assert first.judge.note == ""
    (usage,) = first.usage_by_metric["canaries"].values()
    assert usage.requests == 10
    assert first.usage.requests == judge_server.stats()["requests"]
    later = NIGHT.replace(day=NIGHT.day + 1)
    rows = [row | {"id": f"later-{row['id']}", "language": "de"} for row in make_rows(60)]
    write_jsonl(tmp_path / "logs" / f"dt={later}" / "a.jsonl", rows)
    second = run_night(settings, later).manifest
    (report,), (usage,) = second.canaries.values(), second.usage_by_metric["canaries"].values()
    assert (report.right, usage.requests, usage.answered_from_store) == (10, 0, 10)
    assert first.usage.requests == judge_server.stats()["requests"]
