"""The nightly's labelled set: judged once a day, and again where nothing came of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragmetrics.config import Settings, make_settings
from ragmetrics.people import fixed_sets, judge_drift_set, load_calibrations
from ragmetrics.records import Finding, Manifest
from ragmetrics.records.judging import Usage
from ragmetrics.rules.checks.judge_drift import judge_drift
from ragmetrics.scoring import judge_info
from ragmetrics.storage import open_store
from ragmetrics.testing import findings_of
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.labelled import make_labelled
from tests.fakes.logs import write_jsonl
from tests.fakes.nights import night, summary

NOW = datetime(2026, 11, 11, 2, tzinfo=UTC)


@pytest.fixture
def settings(tmp_path: Path, judge_server: JudgeServer) -> Settings:
    """A night of one metric, whose judge has a labelled set of 25 rows."""
    path = write_jsonl(tmp_path / "fixed.jsonl", make_labelled(25))
    priced = {"usd_per_million_prompt_tokens": 0.4, "usd_per_million_completion_tokens": 1.6}
    judge = judge_at(judge_server, retries=0) | priced
    return make_settings(
        {
            "store": str(tmp_path / "store"),
            "metrics": ["context_relevance"],
            "judge": judge,
            "alerts": {"drift_set": str(path)},
        }
    )


def judged(settings: Settings, now: datetime = NOW) -> str | None:
    """Judge the set at a time; why it was not."""
    return judge_drift_set(settings, open_store(settings), now)


def level_of(settings: Settings, begun: datetime = NOW) -> Finding:
    """What a night that was begun then says of its judge's level."""
    files = open_store(settings)
    fixed = fixed_sets(settings, files, load_calibrations(files))
    (found,) = findings_of(judge_drift, a_night(settings, begun), fixed_sets=fixed)
    return found


def a_night(settings: Settings, begun: datetime) -> Manifest:
    """A night's record, by the judge of the settings."""
    info, _ = judge_info(settings)
    made = night(0, metrics=[summary("context_relevance", 0.5)])
    times = {"started_at": begun, "finished_at": begun + timedelta(minutes=9)}
    return made.model_copy(update={"judge": info, **times})


def test_a_judge_that_is_down_is_told_and_asked_again_the_same_day(
    settings: Settings, judge_server: JudgeServer
) -> None:
    """It is not refused, yet gives no verdict: the night says so, and what a run that is repeated
    an hour later finds is not `judged today`.
    """
    judge_server.faults(fail={"500": 1.0})
    problem = judged(settings)
    assert problem is not None
    assert problem.endswith("openai:gpt-6-luna: no verdict")
    found = level_of(settings)
    assert (found.level, found.severity) == ("no_data", "warning")
    assert "0 of its questions have all verdicts, 20 are needed" in found.message
    judge_server.reset()
    assert judged(settings, NOW + timedelta(hours=1)) is None
    assert level_of(settings).level == "ok"
    asked = judge_server.stats()["requests"]
    assert judged(settings, NOW + timedelta(hours=2)) is None
    assert judge_server.stats()["requests"] == asked


def test_labels_that_were_mended_count_the_same_day(
    settings: Settings, judge_server: JudgeServer
) -> None:
    """A set without labels for the night's metrics is told each time, until it has some."""
    path = Path(settings.alerts.drift_set or "")
    whole = path.read_bytes()
    write_jsonl(path, make_labelled(25, labels={"context_precision": 1}))
    for hour in range(2):
        problem = judged(settings, NOW + timedelta(hours=hour))
        assert problem is not None
        assert "it has no labels for context_relevance" in problem
    assert judge_server.stats()["requests"] == 0
    path.write_bytes(whole)
    assert judged(settings, NOW + timedelta(hours=2)) is None
    assert judge_server.stats()["requests"] > 0


def test_a_set_of_which_too_little_can_be_used_is_told(settings: Settings) -> None:
    """Bad rows are left out; what is left is no ground to call the judge unchanged."""
    path = Path(settings.alerts.drift_set or "")
    write_jsonl(path, [*make_labelled(19), "{not json", '{"user_input": 3}'])
    assert judged(settings) is None
    found = level_of(settings)
    assert found.level == "no_data"
    assert "19 of its questions have all verdicts, 20 are needed" in found.message


def test_a_late_run_of_the_same_day_finds_the_set_judged(settings: Settings) -> None:
    """It is judged once a day, so a run for late logs, twenty hours after, goes by the same."""
    assert judged(settings) is None
    late = NOW + timedelta(hours=20)
    assert judged(settings, late) is None
    assert len(load_calibrations(open_store(settings))) == 1
    assert level_of(settings, late).level == "ok"
    assert level_of(settings, late + timedelta(days=1)).level == "no_data"


def test_two_equal_judges_of_a_panel_have_a_record_each(
    settings: Settings, judge_server: JudgeServer
) -> None:
    """They have one fingerprint, and names of their own."""
    judge = settings.judge.model_dump(exclude_unset=True)
    values = settings.model_dump(exclude_unset=True, exclude={"judge"})
    panel = make_settings({**values, "judges": [judge, judge]})
    assert judged(panel) is None
    names = [calibration.judge.name for calibration in load_calibrations(open_store(panel))]
    assert names == ["openai:gpt-6-luna", "openai:gpt-6-luna #2"]
    assert level_of(panel).level == "ok"


def test_of_a_judge_with_also_each_metric_has_the_level_of_its_own(
    settings: Settings, judge_server: JudgeServer
) -> None:
    """The cost is that of both."""
    first = judge_at(judge_server, "rerank", model="r", thresholds=[0.3, 0.6])
    second = judge_at(judge_server, model="chat")
    values = settings.model_dump(exclude_unset=True, exclude={"judge", "metrics"})
    metrics = ["context_relevance", "context_recall"]
    both = make_settings({**values, "judge": first | {"also": second}, "metrics": metrics})
    assert judged(both) is None
    files = open_store(both)
    known = load_calibrations(files)
    fixed = fixed_sets(both, files, known)
    assert fixed is not None
    manifest = a_night(both, NOW - timedelta(minutes=1))
    assert {one: len(fixed._judged(manifest, one).levels) for one in metrics} == {
        "context_relevance": 25,
        "context_recall": 25,
    }
    assert level_of(both).level == "ok"
    spent = fixed.spent(manifest)
    assert spent is not None
    assert spent.requests == sum(one.usage.requests for one in known if one.usage.prompt_tokens)
    assert {one.judge.name for one in known} == {"rerank:r", "openai:chat"}


def test_what_the_set_cost_is_told_with_the_night_that_paid_it(settings: Settings) -> None:
    """It is in no other figure, and a second run of the day pays nothing."""
    assert judged(settings) is None
    files = open_store(settings)
    fixed = fixed_sets(settings, files, load_calibrations(files))
    assert fixed is not None
    cost = fixed.spent(a_night(settings, NOW - timedelta(minutes=1)))
    assert isinstance(cost, Usage)
    assert (cost.requests, cost.usd is not None) == (50, True)
    assert fixed.spent(a_night(settings, NOW + timedelta(hours=1))) is None
