"""Judge drift as a finding of the night: told once, resolved by the next calibration."""

from __future__ import annotations

from datetime import timedelta

from ragmetrics.delivery.state import AlertStates, advance_states
from ragmetrics.messages import compose
from ragmetrics.people import History
from ragmetrics.records import (
    Calibration,
    Drift,
    DriftUnknown,
    Finding,
    JudgeInfo,
    Manifest,
    MetricDrift,
    Source,
)
from ragmetrics.rules.checks.judge_drift import judge_drift
from ragmetrics.testing import findings_of
from tests.fakes.calibrations import calibration, drift_between, history
from tests.fakes.nights import FIRST, night

FIRM = drift_between(calibration(), calibration(1))
DRIFTED = drift_between(calibration(), calibration(1), "context_relevance")


EMBEDDED = JudgeInfo(name="lexical", fingerprint="f1")


def _drifted(earlier: Calibration, later: Calibration) -> Drift:
    return drift_between(earlier, later, "context_relevance")


def _untold(drift: Drift, why: DriftUnknown) -> Drift:
    """The same, where nothing can be told."""
    metrics = [MetricDrift(metric=metric.metric, untold=why) for metric in drift.metrics]
    return drift.model_copy(update={"metrics": metrics})


SILENT = _untold(FIRM, "no_verdict")


def findings(*drifts: Drift, manifest: Manifest | None = None) -> list[Finding]:
    """What is said of drift in a night."""
    return findings_of(judge_drift, manifest or night(), drifts=drifts)


def test_drift_is_a_warning_with_its_numbers() -> None:
    """What changed, by how much, how surely, and on how many verdicts."""
    (found,) = findings(DRIFTED)
    assert (found.level, found.severity) == ("breach", "warning")
    assert found.message == (
        "lexical on towers, 2026-11-02 to 2026-11-09: context_relevance drifted: "
        "quadratic kappa moved by -0.300 [-0.350, -0.250], "
        "AUC moved by -0.150 [-0.200, -0.100], "
        "30% of verdicts changed"
    )
    assert found.key == "helpdesk/judge_drift/judge=embedded/set=towers"
    assert found.metric is None


def test_no_drift_is_fine() -> None:
    """It is a check like others."""
    (found,) = findings(FIRM)
    assert found.level == "ok"
    assert found.message.endswith("no drift shown")


def test_a_calibration_without_verdicts_is_no_data() -> None:
    """It is neither fine nor drift."""
    (found,) = findings(SILENT)
    assert found.level == "no_data"
    assert found.message.endswith("context_relevance: no data: no readable verdict")


def test_an_outage_resolves_nothing() -> None:
    """A firing alert goes on until a calibration shows no further change."""
    transitions = []
    book = AlertStates()
    for number, drift in enumerate([FIRM, DRIFTED, SILENT, SILENT, FIRM]):
        book, told = advance_states(book, findings(drift), FIRST + timedelta(number), 7)
        transitions += [one.transition for one in told]
    assert transitions == [None, "fired", None, None, "resolved"]


def test_what_was_told_before_stands_where_nothing_can_be_told() -> None:
    """Metric by metric: too few questions, or another set, take nothing back; an outage does."""
    first, second, third = calibration(), calibration(1), calibration(2)
    cases: list[tuple[DriftUnknown, bool]] = [
        ("too_few", True),
        ("set_changed", True),
        ("no_verdict", False),
    ]
    for untold, known in cases:
        later = _untold(drift_between(second, third), untold)
        (found,) = History((), (_drifted(first, second), later)).newest_drifts(EMBEDDED)
        assert found.drifted == known
    only_later = History((), (_untold(drift_between(second, third), "too_few"),))
    assert only_later.newest_drifts(EMBEDDED) == []


def test_changed_settings_are_named() -> None:
    """A judge that was changed on purpose is another one all the same."""
    (found,) = findings(DRIFTED.model_copy(update={"same_fingerprint": False}))
    assert found.message.endswith("(with changed settings or prompts)")


def test_a_night_without_rows_says_nothing_of_the_judge() -> None:
    """There was nothing for it to judge."""
    empty = night(source=Source(logs="logs/", files=0, rows=0, problem="no file"))
    assert findings(DRIFTED, manifest=empty) == []


def test_it_is_told_once_and_resolved_by_the_next_calibration() -> None:
    """Nights in between are silent; a reminder comes after a week, as of any alert."""
    transitions = []
    book = AlertStates()
    for number, drift in enumerate([FIRM, DRIFTED, DRIFTED, DRIFTED, FIRM]):
        book, told = advance_states(book, findings(drift), FIRST + timedelta(number), 7)
        transitions += [one.transition for one in told]
    assert transitions == [None, "fired", None, None, "resolved"]


def test_it_keeps_no_other_alert_from_being_closed() -> None:
    """Drift may last for weeks, and says nothing of whether a rule still exists."""
    gone = Finding(key="old", kind="metric", level="breach", rule="r", message="m", metric="m")
    book, _ = advance_states(AlertStates(), [gone], FIRST, 7)
    _, told = advance_states(book, findings(DRIFTED), FIRST + timedelta(8), 7)
    assert [(one.key, one.transition) for one in told if one.key == "old"] == [("old", "resolved")]


def test_slack_names_it() -> None:
    """As a warning, with the finding's sentence."""
    _, told = advance_states(AlertStates(), findings(DRIFTED), FIRST, 7)
    message = compose(night(), told, dashboard=None, redact=False)
    assert message
    assert "Warning: judge drift" in message.text
    assert "Context relevance (graded) drifted" in str(message.blocks)


def test_only_the_newest_drift_of_tonights_judges_counts() -> None:
    """One per judge and set; a panel has several judges, and repeats do not hide one."""
    known = history(
        *(calibration(week) for week in range(3)),
        *(calibration(week, name="other") for week in range(2)),
        *(calibration(week, judge="openai:x") for week in range(2)),
    )
    embedded = JudgeInfo(name="lexical (3 times)", fingerprint="f")
    assert [(drift.name, drift.later.day) for drift in known.newest_drifts(embedded)] == [
        ("other", 9),
        ("towers", 16),
    ]
    panel = JudgeInfo(name="mean of", fingerprint="f", panel=["lexical", "openai:x"])
    assert len(known.newest_drifts(panel)) == 3
    assert known.newest_drifts(JudgeInfo(name="openai:y", fingerprint="f")) == []


def test_a_drift_counts_where_its_judge_scores_the_metric() -> None:
    """Of a judge under `also`: in its metrics, or in those of the same verdicts."""
    known = history(calibration(), calibration(1))
    for metric, judge, counts in (
        ("context_relevance", "lexical", True),
        ("context_precision", "lexical", True),
        ("context_entity_recall", "lexical", False),
        ("context_precision", "openai:y", False),
    ):
        also = JudgeInfo(name=judge, fingerprint="f", metrics=[metric])
        info = JudgeInfo(name="rerank:x", fingerprint="f", also=also)
        assert bool(known.newest_drifts(info)) == counts
    alone = JudgeInfo(name="lexical", fingerprint="f", also=JudgeInfo(name="y", fingerprint="f"))
    assert known.newest_drifts(alone)
