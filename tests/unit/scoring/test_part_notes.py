"""Why rows have no usable verdict: counted where they are scored, told wherever people look."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ragmetrics import evaluate
from ragmetrics.comparison import run_gate
from ragmetrics.config import Settings, make_settings
from ragmetrics.dashboard import redacted
from ragmetrics.delivery import gate_result
from ragmetrics.pipeline import run_night
from ragmetrics.pipeline.nightly import CoverageShort
from ragmetrics.records import IndexBuild, Manifest, Score, Status, Usage, VerdictCount
from ragmetrics.scoring.part_notes import UnansweredRows, UsageReport
from ragmetrics.storage import Runs, open_store
from tests.builders import judge_at, night_values
from tests.fakes.build_logs import gate_settings, golden, write_build
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.slack import SlackServer

TOO_LONG = "the judge answered 400: This model's maximum context length is exceeded."


def settings(server: JudgeServer, tmp_path: Path, **more: Any) -> Settings:
    """A night of 30 rows, of which the prompts of context_relevancy are too long."""
    server.faults(max_prompt_chars=900, quotes=True)
    write_jsonl(tmp_path / "log.jsonl", make_rows(30))
    return make_settings(
        night_values(
            tmp_path,
            logs="log.jsonl",
            dataset="d",
            metrics=["context_recall", "context_relevancy"],
            judge=judge_at(server),
        )
        | more
    )


def failed_night(chosen: Settings) -> Manifest:
    """The manifest of a night that could not score all rows."""
    with pytest.raises(CoverageShort, match="answered 400: "):
        run_night(chosen, NIGHT)
    return Runs(open_store(chosen)).nights()[0]


def test_reasons_that_differ_in_numbers_are_one() -> None:
    """Seconds, ids of requests and the rows that a server quotes do not tell reasons apart."""
    rows = UnansweredRows()
    for number in range(40):
        reason = f"the judge did not answer in time ({number / 7:.2f} s)"
        rows.note("recall", Score(None, reason, status=Status.JUDGE_FAILED))
    rows.note("recall", Score(None, "no vérdict\x1b[31m", status=Status.UNREADABLE))
    rows.note("recall", Score(0.5))
    assert rows.reasons("recall") == {
        "the judge did not answer in time (0.00 s)": 40,
        "no vérdict [31m": 1,
    }


@given(st.lists(st.text(max_size=400), max_size=300))
def test_counts_are_bounded_and_none_is_lost(reasons: list[str]) -> None:
    """Whatever a judge says: the notes of a part stay small, and their rows add up."""
    rows = UnansweredRows()
    for reason in reasons:
        rows.note("recall", Score(None, reason, status=Status.JUDGE_FAILED))
    whole = UnansweredRows()
    whole.add(rows.notes())
    whole.add(rows.notes())
    found = whole.notes()["metrics"].get("recall", {})
    assert sum(found.values()) == 2 * len(reasons)
    assert len(found) <= 101 and all(len(one) <= 240 for one in found)


def test_errors_of_a_metric_are_told_elsewhere() -> None:
    """A metric's own code is not the judge."""
    rows = UnansweredRows()
    rows.note("recall", Score(None, "KeyError", status=Status.METRIC_FAILED))
    assert rows.notes() == {"metrics": {}, "judges": {}}


def test_a_night_says_why_its_rows_failed(
    judge_server: JudgeServer, slack_server: SlackServer, tmp_path: Path
) -> None:
    """The finding, the message, the page and the problems have the endpoint's words, and what to
    do; the other metric is scored.
    """
    chosen = settings(judge_server, tmp_path)
    manifest = failed_night(chosen)
    summary = manifest.summary("context_relevancy")
    assert summary and next(iter(summary.unanswered)).startswith(TOO_LONG)
    (finding,) = (finding for finding in manifest.findings if finding.level == "breach")
    for text in (finding.message, manifest.problems[0]):
        assert TOO_LONG in text and "(30); choose a model that reads longer prompts" in text
    assert "maximum context length is exceeded" in json.dumps(slack_server.received)
    page = next((tmp_path / "store").glob(f"dashboard/{NIGHT}/index.html")).read_text()
    assert "maximum context length is exceeded" in page


def test_a_redacted_night_quotes_no_row(judge_server: JudgeServer, tmp_path: Path) -> None:
    """What the endpoint quotes of a row is hashed in every text."""
    manifest = failed_night(settings(judge_server, tmp_path, redact=True))
    shown = redacted(manifest).model_dump_json()
    assert "What is the height" in manifest.model_dump_json()
    assert "What is the height" not in shown and "the judge answered 400: [" in shown


def test_a_gate_and_its_pull_request_say_it(judge_server: JudgeServer, tmp_path: Path) -> None:
    """A build that cannot be judged is not decided, and the pull request says why."""
    judge_server.faults(max_prompt_chars=10, quotes=False)
    judge = judge_at(judge_server)
    chosen = gate_settings(tmp_path, judge=judge, metrics=["context_recall"])
    for build in ("b1", "b2"):
        write_build(tmp_path, build, golden(30))
    found = run_gate(chosen, IndexBuild(dataset="towers", build="b2", serving="b1"))
    assert "maximum context length" in html.unescape(gate_result(found).markdown)


def test_few_failures_are_no_problem(judge_server: JudgeServer) -> None:
    """Below the limit of the alert, the reasons are in the figures of the metric alone."""
    judge_server.faults(max_prompt_chars=2_000)
    rows = make_rows(39)
    rows.append({**rows[0], "id": "long", "user_input": "Long?", "reference": "word. " * 400})
    judge = judge_at(judge_server)
    result = evaluate(rows, metrics=["context_recall"], settings=make_settings({"judge": judge}))
    assert result.manifest.problems == []
    assert list(result.as_json()["metrics"]["context_recall"]["unanswered"].values()) == [1]


def test_parts_of_an_earlier_version_name_the_lexical_judge_as_it_is_called_now() -> None:
    """A night of a panel that is published again counts it as free, as before."""
    report = UsageReport()
    for name in ("embedded #2", "lexical #2"):
        report.add({name: {"recall": Usage(requests=3).model_dump()}})
    assert report.usage == {"lexical #2": Usage(requests=6)}
    assert report.by_metric_without({"lexical #2"}) == {}


def test_verdicts_of_parts_add_up_by_judge_and_prompt() -> None:
    """A judge that computes its verdicts has none."""
    report, grade = UsageReport(), VerdictCount(top=2, levels={1: 4}, replies=4)
    for _ in range(2):
        report.add_verdicts({"m": {"grade": grade.model_dump(mode="json")}, "lexical": {}})
    twice = VerdictCount(top=2, levels={1: 8}, replies=8)
    assert report.verdicts == {"m": {"grade": twice}}
