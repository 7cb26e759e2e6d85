"""Rules: a night's numbers become findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragmetrics.alert_settings import AlertSettings, Rule
from ragmetrics.alerts.health import check_health
from ragmetrics.alerts.markup import clean
from ragmetrics.calibration.records import Drift
from ragmetrics.changes import drop_text
from ragmetrics.protocol import Status
from ragmetrics.records import Finding, Level, Manifest, Segment, Summary
from ragmetrics.stats.comparisons import Drop, compare
from ragmetrics.store.history import trailing
from ragmetrics.summarise import MetricScores, find_segments, summarise

ALPHA = 0.05
"""Of the one-sided tests of one night, after control of the family (Benjamini-Hochberg)."""
DEFAULT_RULES = (
    Rule(metric="context_relevance", max_drop=0.05, versus="trailing:7"),
    Rule(metric="context_recall", max_drop=0.05, versus="trailing:7"),
)

Load = Callable[[Manifest, str], MetricScores]
"""Reads a metric's scores of an earlier night."""


@dataclass(frozen=True)
class Night:
    """What the rules look at: the manifest so far, this night's scores, and the nights before.

    `drifts` are the newest of this night's judges, one per labelled set.
    """

    manifest: Manifest
    scores: dict[str, MetricScores]
    earlier: Sequence[Manifest]
    load: Load
    drifts: Sequence[Drift] = ()


@dataclass(frozen=True)
class _Case:
    """One rule held against one segment, before the family's control."""

    rule: Rule
    finding: Finding
    drop: Drop | None = None
    was_firing: bool = False


def evaluate(settings: AlertSettings, night: Night) -> list[Finding]:
    """All findings of a night. What explains a metric's finding stands first and silences it:
    with nothing to score, no metric rule is held.
    """
    health = check_health(settings, night.manifest, night.drifts)
    if any(finding.level == "no_data" for finding in health):
        return [_clean(finding) for finding in health]
    silenced = {finding.metric for finding in health if finding.level == "breach"}
    rules = settings.rules if settings.rules is not None else _applicable(night)
    cases = [
        case
        for rule in rules
        if rule.metric not in silenced
        for segment in _segments(rule, night)
        for case in _hold(rule, segment, night)
    ]
    return [_clean(finding) for finding in (*health, *_controlled(cases))]


def _clean(finding: Finding) -> Finding:
    """Tags and reasons come from logs: no line break or escape code of theirs reaches a log."""
    told = {"message": clean(finding.message, 1_000), "rule": clean(finding.rule, 300)}
    return finding.model_copy(update=told)


def _applicable(night: Night) -> list[Rule]:
    """The default rules, less those whose metric has never had a row to score."""
    seen = [night.manifest, *night.earlier]
    return [
        rule
        for rule in DEFAULT_RULES
        if any((summary := one.summary(rule.metric)) and summary.scored for one in seen)
    ]


def _segments(rule: Rule, night: Night) -> list[Segment | None]:
    if rule.by is None:
        return [None]
    before = {
        summary.segment.value
        for one in trailing(night.earlier, night.manifest.date, 7)
        for summary in one.segments
        if summary.segment and summary.segment.tag == rule.by
    }
    # Tonight's by the rows: the manifest's segments are only those that are shown.
    scores = night.scores.get(rule.metric)
    now = {segment.value for segment in find_segments(scores, [rule.by])} if scores else set()
    values = before | now
    return [Segment(tag=rule.by, value=value) for value in sorted(values)]


def _hold(rule: Rule, segment: Segment | None, night: Night) -> list[_Case]:
    """Hold a rule's limits against a segment: one finding for `min`, one for `max_drop`."""
    now = _summary(rule.metric, segment, night)
    cases = []
    if rule.min is not None:
        cases.append(_hold_min(rule, segment, night, now))
    if rule.max_drop is not None and (case := _hold_drop(rule, segment, night, now)):
        cases.append(case)
    return cases


def _summary(metric: str, segment: Segment | None, night: Night) -> Summary | None:
    if metric not in night.scores:
        return None
    if segment is None:
        return night.manifest.summary(metric)
    scores = night.scores[metric]
    if f"tag:{segment.tag}" not in scores.table:
        return None
    return summarise(scores, "", segment)


def _hold_min(rule: Rule, segment: Segment | None, night: Night, now: Summary | None) -> _Case:
    limit = float(rule.min if rule.min is not None else 0)
    finding = _finding(rule, segment, night, f"min {limit:g}", f"below {limit:g}", now, limit)
    if now is None or now.mean is None or now.scored < rule.min_rows:
        return _Case(rule, _too_few(rule, finding, now))
    level: Level = "ok"
    if now.mean < limit:
        sure = now.high is not None and now.high < limit
        level = "breach" if sure else "suspect"
    elif rule.clear is not None and now.mean < rule.clear:
        level = "suspect" if _was_firing(finding, night) else "ok"
    text = f"{finding.metric}{_of(segment)} is {now.mean:.3f}{_interval(now)}, limit {limit:g}"
    return _Case(rule, finding.model_copy(update={"level": level, "message": text}))


def _hold_drop(
    rule: Rule, segment: Segment | None, night: Night, now: Summary | None
) -> _Case | None:
    limit = float(rule.max_drop if rule.max_drop is not None else 0)
    name = f"max_drop {limit:g} versus {rule.versus}"
    text = f"drop of more than {limit:g} against {_versus(rule.versus)}"
    finding = _finding(rule, segment, night, name, text, now, limit)
    if now is None or now.mean is None or now.scored < rule.min_rows:
        return _Case(rule, _too_few(rule, finding, now))
    baseline = _baseline(rule, night, finding.key)
    if not baseline:
        return _incomparable(rule, finding, night, "no earlier night by the same judge")
    before: dict[str, list[float]] = {}
    for one in baseline:
        for question, values in night.load(one, rule.metric).by_question(segment).items():
            before.setdefault(question, []).extend(values)
    drop = compare(before, night.scores[rule.metric].by_question(segment))
    if drop is None:
        return _incomparable(rule, finding, night, "too few questions shared with earlier nights")
    rows = [value for values in before.values() for value in values]
    mean = sum(rows) / len(rows)
    label = baseline[0].date.isoformat() if len(baseline) == 1 else f"{len(baseline)} nights before"
    told = drop_text(drop.drop, drop.low, drop.high)
    fell = drop.drop > 0 and told.startswith("drop")
    message = (
        f"{rule.metric}{_of(segment)} {'fell' if fell else 'went'} from {mean:.3f} "
        f"({label}) to {now.mean:.3f}; {told} over "
        f"{drop.questions} {'shared ' if drop.paired else ''}questions, limit {limit:g}"
    )
    update: dict[str, Any] = {
        "message": message,
        "baseline": mean,
        "baseline_label": label,
        "drop": drop.drop,
        "drop_low": drop.low,
        "drop_high": drop.high,
        "p_value": drop.p_value,
    }
    return _Case(rule, finding.model_copy(update=update), drop, _was_firing(finding, night))


def _controlled(cases: Sequence[_Case]) -> list[Finding]:
    """Decide the drop rules together, holding the share of false alarms among alarms."""
    tested = [case for case in cases if case.drop is not None]
    if not tested:
        return [case.finding for case in cases]
    from scipy import stats  # takes most of a second: only a night that is compared pays it

    adjusted = dict(
        zip(
            map(id, tested),
            stats.false_discovery_control([case.drop.p_value for case in tested if case.drop]),
            strict=True,
        )
    )
    return [
        replace(case, finding=_decide(case, float(adjusted[id(case)]))).finding
        if case.drop is not None
        else case.finding
        for case in cases
    ]


def _decide(case: _Case, p_value: float) -> Finding:
    drop = case.drop.drop if case.drop else 0.0
    limit, clear = case.rule.max_drop or 0.0, case.rule.clear
    level: Level = "ok"
    if drop > limit:
        level = "breach" if p_value < ALPHA else "suspect"
    elif clear is not None and drop > clear and case.was_firing:
        level = "suspect"
    return case.finding.model_copy(update={"level": level, "p_value": p_value})


def _baseline(rule: Rule, night: Night, key: str) -> list[Manifest]:
    """The nights to compare with: scored in the same way by the same judge, and good ones.

    Nights on which this alert was firing are left out: a drop that stays must not become the
    measure by which it looks resolved.
    """
    now = night.manifest.summary(rule.metric)
    same = [
        one
        for one in night.earlier
        if now
        and (summary := one.summary(rule.metric))
        and summary.scored
        and summary.fingerprint == now.fingerprint
        and not _fired(one, key)
    ]
    nights = 1 if rule.versus == "previous" else int(rule.versus.partition(":")[2])
    return same[-nights:]


def _finding(
    rule: Rule,
    segment: Segment | None,
    night: Night,
    name: str,
    text: str,
    now: Summary | None,
    limit: float,
) -> Finding:
    where = str(segment) if segment else "all"
    return Finding(
        key=f"{night.manifest.dataset}/{rule.metric}/{where}/{name}",
        kind="metric",
        level="ok",
        severity=rule.severity,
        rule=f"{rule.metric}{_of(segment)}: {text}",
        message="",
        metric=rule.metric,
        segment=segment,
        mean=now.mean if now else None,
        low=now.low if now else None,
        high=now.high if now else None,
        n=now.scored if now else 0,
        questions=now.questions if now else 0,
        limit=limit,
        for_nights=rule.for_,
    )


def _too_few(rule: Rule, finding: Finding, now: Summary | None) -> Finding:
    rows = now.scored if now else 0
    text = f"{finding.metric}{_of(finding.segment)}: {rows} rows scored, {rule.min_rows} needed"
    if now is not None and now.status:
        rest = [f"{n} {status}" for status, n in now.status.items() if status != Status.SCORED]
        text += f" ({', '.join(rest)})" if rest else ""
    return finding.model_copy(update={"level": "no_data", "message": text})


def _incomparable(rule: Rule, finding: Finding, night: Night, reason: str) -> _Case | None:
    """Nothing to compare with is fine, unless the alert fires: then it must not look resolved."""
    if _was_firing(finding, night):
        return None
    text = f"{finding.metric}: nothing to compare with yet: {reason}"
    return _Case(rule, finding.model_copy(update={"message": text, "compared": False}))


def _was_firing(finding: Finding, night: Night) -> bool:
    return bool(night.earlier) and _fired(night.earlier[-1], finding.key)


def _fired(manifest: Manifest, key: str) -> bool:
    return any(one.key == key and one.state == "firing" for one in manifest.findings)


def _versus(versus: str) -> str:
    if versus == "previous":
        return "the previous night"
    return f"the {versus.partition(':')[2]} nights before"


def _of(segment: Segment | None) -> str:
    return f" of {clean(str(segment), 80)}" if segment else ""


def _interval(now: Summary) -> str:
    return "" if now.low is None or now.high is None else f" [{now.low:.3f}, {now.high:.3f}]"
