"""Samples: a message of every kind, of a made-up dataset, by the code that writes the real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from ragmetrics.alerts.alert_store import AlertStore, Message
from ragmetrics.alerts.data_quality import check_health
from ragmetrics.alerts.gate_message import compose_failed_gate, compose_gate
from ragmetrics.alerts.slack import compose
from ragmetrics.alerts.state import NO_SILENCES, advance_states
from ragmetrics.config import AlertSettings
from ragmetrics.model import (
    ComparedMeans,
    ContributorShare,
    DatedChange,
    Escalation,
    Finding,
    Gate,
    JudgeInfo,
    Manifest,
    MetricVerdict,
    Notification,
    SampledMean,
    Segment,
    Silence,
    Source,
    Summary,
    Usage,
    WorseQuestion,
    WorstRow,
    compared_words,
)
from ragmetrics.version import __version__

NIGHT = date(2026, 11, 19)
_PAGES = "https://dashboards.example.com/ragmetrics"
_RUN = "https://prefect.example.com/runs/flow-run/6f0c"
_REMIND_DAYS = 7
_MORNING = datetime(2026, 11, 20, 2, tzinfo=UTC)
_JUDGE = JudgeInfo(name="openai gpt-4.1-mini", fingerprint="sample")
_SECTIONS = ("billing", "returns", "api", "setup", "teams", "security", "mobile", "limits")
_MEANS = {
    "context_recall": (0.842, 0.714),
    "context_relevance": (0.761, 0.690),
    "context_precision": (0.802, 0.741),
    "faithfulness": (0.917, 0.844),
    "response_relevancy": (0.873, 0.808),
}
_QUESTIONS = (
    "How do I get a refund for a yearly plan?",
    "Which invoices can be changed after they were sent?",
    "Can I add seats in the middle of a month?",
)


def sample_messages(redact: bool = False) -> list[tuple[str, Message]]:
    """Every kind of message under a title; `redact` as in the settings."""
    health, poor = AlertSettings(), _night(rows=700, quarantined=540)
    ill = _summary("context_recall", 0.84, status={"judge_failed": 310}, scored=930)
    recall = _drop("context_recall", causes=True)
    quiet = [_drop("context_relevance"), _drop("faithfulness", "api")]
    nights: dict[str, tuple[Manifest, list[tuple[int, list[Finding]]]]] = {
        "Fired": (_night(), [(0, [recall])]),
        "Fired, a warning": (_night(), [(0, [_low("context_relevance")])]),
        "Fired, on a sampled night": (
            _night(rows=20_000, summaries=[_of_sample("context_relevance")]),
            [(0, [_low("context_relevance").model_copy(update={"n": 500, "questions": 463})])],
        ),
        "Reminder, with one acknowledged and one snoozed": (
            _night(),
            [(7, [recall]), (5, [recall, *quiet]), (0, [recall, *quiet])],
        ),
        "Escalated": (_night(), [(2, [recall]), (0, [_worse(recall)])]),
        "Resolved": (_night(), [(3, [recall]), (0, [_over(recall)])]),
        "Many at once": (_night(), [(0, _everything())]),
        "Judge drift": (_night(), [(0, [_drift()])]),
        "Labels gone stale": (_night(), [(0, [_stale()])]),
        "No data": (
            _night(rows=0, files=0, problem="no log file below s3://example/logs/dt=2026-11-19/"),
            [],
        ),
        "Rows in quarantine": (poor, []),
        "Judge failures": (_night(summaries=[ill], problems=["429: quota exceeded"]), []),
    }
    told = [
        (title, _told(night, spell or [(0, check_health(health, night))], redact))
        for title, (night, spell) in nights.items()
    ]
    return [*told, ("Index build held", _held(redact)), ("Index build without verdict", _lost())]


def _told(night: Manifest, spell: Sequence[tuple[int, Sequence[Finding]]], redact: bool) -> Message:
    """The message of the last of some nights, so many days before NIGHT with such findings."""
    alerts, findings = AlertStore(), list[Finding]()
    for days, found in spell:
        day = NIGHT - timedelta(days=days)
        alerts, findings = advance_states(alerts, found, day, _REMIND_DAYS, _silences(alerts))
    page = f"{_PAGES}/{NIGHT}/index.html"
    message = compose(night, findings, dashboard=page, redact=redact, run_url=_RUN)
    if message is None:
        raise ValueError("a sample tells nothing")
    return message


def _silences(alerts: AlertStore) -> Mapping[str, Silence]:
    """Of the second and third alert, where there are three: one acknowledged, one snoozed."""
    if len(alerts.states) != 3:
        return NO_SILENCES
    _, second, third = alerts.states
    at, until = _MORNING, NIGHT + timedelta(days=4)
    since = alerts.states[second].since
    seen = Silence(key=second, at=at, by="ada", note="the reranker is rolled back", since=since)
    return {second: seen, third: Silence(key=third, at=at, by="ada", until=until)}


def _night(
    *,
    rows: int = 1_240,
    summaries: Sequence[Summary] | None = None,
    problems: Sequence[str] = (),
    **source: Any,
) -> Manifest:
    means = {metric: now for metric, (_, now) in _MEANS.items()}
    segments = [
        _summary("context_recall", 0.41 + 0.06 * number, Segment(tag="section", value=value))
        for number, value in enumerate(_SECTIONS)
    ]
    given = {"files": 4, "index_builds": {"2026-11-18": rows} if rows else {}, **source}
    return Manifest(
        dataset="help-centre",
        date=NIGHT,
        run="sample",
        started_at=_MORNING,
        finished_at=_MORNING + timedelta(minutes=6),
        ragmetrics=__version__,
        source=Source(logs="s3://example/logs/dt=2026-11-19/", rows=rows, **given),
        judge=_JUDGE,
        shards=1,
        metrics=list(summaries or (_summary(name, mean) for name, mean in means.items())),
        segments=segments,
        findings=[],
        worst=[
            WorstRow(id=f"row-{n}", metric="context_recall", value=0.1 * n, user_input=question)
            for n, question in enumerate(_QUESTIONS)
        ],
        usage=Usage(),
        problems=list(problems),
    )


def _summary(
    metric: str,
    mean: float,
    segment: Segment | None = None,
    scored: int = 1_240,
    status: Mapping[str, int] | None = None,
) -> Summary:
    scored = 155 if segment else scored
    return Summary(
        metric=metric,
        segment=segment,
        mean=mean,
        low=mean - 0.03,
        high=mean + 0.03,
        scored=scored,
        questions=scored,
        status={"scored": scored, **(status or {})},
        fingerprint="sample",
    )


def _of_sample(metric: str) -> Summary:
    """The mean of all rows, by the 500 of them that were judged."""
    mean = _MEANS[metric][1]
    bounds = {"low": mean - 0.03, "high": mean + 0.03}
    sample = SampledMean(rows=20_000, mean=mean, **bounds, weight=0.6, spread=0.3, correlation=0.6)
    return _summary(metric, mean, scored=500).model_copy(update={"sample": sample})


def _drop(
    metric: str, section: str | None = None, more: float = 0.0, causes: bool = False
) -> Finding:
    """What a `max_drop` rule says of a metric, all of it or one segment."""
    before, now = _MEANS[metric]
    now, drop = now - more, before - now + more
    segment = Segment(tag="section", value=section) if section else None
    of, questions = (f" of {segment}", 110) if segment else ("", 880)
    means = ComparedMeans(
        before=before + 0.004, now=now + 0.004, questions=questions - 40, paired=True
    )
    carriers = [ContributorShare(tag="section", value="billing", share=0.62, questions=140)]
    days = [NIGHT, NIGHT - timedelta(days=1)]
    return Finding(
        key=f"help-centre/{metric}/{segment or 'all'}/max_drop 0.05 versus trailing:7",
        kind="metric",
        level="breach",
        rule=f"{metric}{of}: drop of more than 0.05 against the 7 nights before",
        message=(
            f"{metric}{of} fell from {compared_words(means, ' to ')} (7 nights before); drop "
            f"{drop:.3f} [{drop - 0.03:.3f}, {drop + 0.03:.3f}], limit 0.05; mean of all rows "
            f"{now:.3f}"
        ),
        metric=metric,
        segment=segment,
        mean=now,
        low=now - 0.03,
        high=now + 0.03,
        n=155 if section else 1_240,
        questions=questions,
        baseline=before,
        baseline_label="7 nights before",
        means=means,
        drop=drop,
        drop_low=drop - 0.03,
        drop_high=drop + 0.03,
        p_value=0.0001,
        limit=0.05,
        for_nights=None,
        change=DatedChange(first=days[0], nights=sorted(days)) if causes else None,
        carriers=carriers if causes else None,
    )


def _worse(finding: Finding) -> Finding:
    """It fell further since it was told, two nights before."""
    last = Notification(night=NIGHT - timedelta(days=2), mean=finding.mean)
    before, now = finding.mean or 0.0, 0.431
    found = Escalation(
        notified=last,
        label=last.night.isoformat(),
        before=before,
        now=now,
        drop=before - now,
        low=before - now - 0.04,
        high=before - now + 0.04,
        p_value=0.00001,
        n=finding.questions,
        limit=0.05,
    )
    means = {"mean": now, "low": now - 0.03, "high": now + 0.03}
    baseline = finding.baseline or 0.0
    drops = {"drop": baseline - now, "drop_low": baseline - now - 0.04}
    drops["drop_high"] = baseline - now + 0.04
    message = f"{finding.metric} fell from {baseline:.3f} (7 nights before) to {now:.3f}"
    return finding.model_copy(
        update={**means, **drops, "message": message, "escalation": found, "change": None}
    )


def _over(fired: Finding) -> Finding:
    """The same once the mean is back."""
    means = ComparedMeans(before=0.846, now=0.843, questions=840, paired=True)
    text = (
        f"{fired.metric} is 0.839, within its limit; from {compared_words(means, ' to ')} "
        "(7 nights before); drop 0.003 [-0.009, 0.015], limit 0.05"
    )
    update = {"level": "ok", "mean": 0.839, "drop": 0.003, "means": means, "message": text}
    return fired.model_copy(update={**update, "change": None, "carriers": None})


def _low(metric: str) -> Finding:
    """What a `min` rule says."""
    mean = _MEANS[metric][1]
    return Finding(
        key=f"help-centre/{metric}/all/min 0.75",
        kind="metric",
        level="breach",
        severity="warning",
        rule=f"{metric}: below 0.75",
        message=f"{metric} is {mean:.3f} [{mean - 0.03:.3f}, {mean + 0.03:.3f}], limit 0.75",
        metric=metric,
        mean=mean,
        low=mean - 0.03,
        high=mean + 0.03,
        n=1_240,
        questions=880,
        limit=0.75,
    )


def _everything() -> list[Finding]:
    """Each metric fell, as a whole and in every section."""
    return [
        _drop(metric, section, 0.01 * number)
        for metric in _MEANS
        for number, section in enumerate((None, *_SECTIONS))
    ]


def _drift() -> Finding:
    key = "help-centre/judge_drift/judge=openai gpt-4.1-mini/set=labelled"
    text = (
        "openai gpt-4.1-mini on labelled, 2026-11-12 to 2026-11-19: context_recall drifted: "
        "quadratic kappa moved by -0.120 [-0.190, -0.050], 11% of verdicts changed"
    )
    rule = "openai gpt-4.1-mini: as it was when last calibrated on labelled"
    return Finding(
        key=key, kind="judge_drift", level="breach", severity="warning", rule=rule, message=text
    )


def _stale() -> Finding:
    text = (
        "labels of 31 questions have gone stale: 40 of 212 golden ids that the 7 nights before "
        "retrieved are in no row (19%, before 1%), and 34% of the ids retrieved are new (before 2%)"
    )
    return Finding(
        key="help-centre/stale_labels",
        kind="stale_labels",
        level="breach",
        severity="warning",
        rule="the ids that labels name are those of the documents there are",
        message=text,
    )


def _held(redact: bool) -> Message:
    """The message of a build that is held for its recall."""
    values: dict[str, Any] = {"before": 0.821, "after": 0.714, "drop": 0.107, "low": 0.071}
    recall = MetricVerdict(
        metric="context_recall",
        **values,
        high=0.143,
        upper=0.137,
        p_value=0.0001,
        questions=150,
        paired=True,
        max_drop=0.05,
        detectable=0.042,
        verdict="hold",
    )
    fallen = [
        WorseQuestion(
            metric="context_recall", user_input=question, id=f"row-{n}", before=1.0, after=0.1 * n
        )
        for n, question in enumerate(_QUESTIONS)
    ]
    gate = Gate(
        dataset="help-centre",
        build="2026-11-20",
        serving="2026-11-13",
        verdict="hold",
        reasons=["context_recall fell by 0.107, more than 0.05"],
        metrics=[recall],
        fallen=fallen,
        logs="builds/2026-11-20/",
        judge=_JUDGE,
        source=Source(logs="builds/2026-11-20/", files=1, rows=150),
        started_at=_MORNING,
        finished_at=_MORNING,
    )
    return compose_gate(gate, page=f"{_PAGES}/builds.html", redact=redact, run_url=_RUN)


def _lost() -> Message:
    """The message of an announced build that cannot be followed."""
    reason = "index build: logs: s3://example/builds/2026-11-21/: there is no such file"
    return compose_failed_gate("help-centre", reason, '{"build": "2026-11-21"}', "3f0c9e0e", _RUN)
