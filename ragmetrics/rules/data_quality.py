"""Data quality: findings on the logs, the quarantine and the judge, independent of scores."""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.config import AlertSettings
from ragmetrics.records import (
    Drift,
    Figure,
    Finding,
    FindingKind,
    Level,
    Manifest,
    MetricDrift,
    Status,
    Summary,
)
from ragmetrics.rules.judge_drift import SURE
from ragmetrics.rules.log_nights import undated
from ragmetrics.text import finite


def check_health(
    settings: AlertSettings, manifest: Manifest, drifts: Sequence[Drift] = ()
) -> list[Finding]:
    """Findings on the logs, the quarantine and the judge; only on the logs where nothing was read.

    `drifts` are the newest drifts of the night's judges, one per labelled set.
    """
    source = manifest.source
    findings = [_no_data(manifest)]
    if source.rows or source.quarantined:  # without rows, a firing alert must not look resolved
        findings.append(_quarantine(settings, manifest))
    if findings[0].level != "no_data":
        findings += [_judge_failures(settings, manifest, one) for one in manifest.metrics]
        findings += [_one_of_panel(settings, manifest, name) for name in manifest.judge.panel]
        findings += [_judge_drift(manifest, one) for one in drifts]
    return findings


def _no_data(manifest: Manifest) -> Finding:
    source = manifest.source
    rule = "every log file is present and complete"
    if source.problem:
        return _health(manifest, "no_data", "no_data", rule, f"nothing to score: {source.problem}")
    if source.broken:
        first = source.broken[0]
        count = f"{len(source.broken)} log file(s) could not be read to the end"
        text = f"{count}: {first.file}: {first.reason}"
        return _health(manifest, "no_data", "breach", rule, text)
    without = f", {text}" if (text := undated(source)) else ""
    return _health(manifest, "no_data", "ok", rule, f"{source.rows:,} rows read{without}")


def _quarantine(settings: AlertSettings, manifest: Manifest) -> Finding:
    source = manifest.source
    total, share = source.rows + source.quarantined, source.quarantined_share
    text = f"{source.quarantined:,} of {total:,} rows quarantined ({share:.1%})"
    if source.reasons:
        reason, count = next(iter(source.reasons.items()))
        text += f"; most often: {reason[:200]} ({count:,})"
    level: Level = "breach" if share > settings.max_quarantined else "ok"
    rule = f"at most {settings.max_quarantined:.0%} of the rows quarantined"
    return _health(manifest, "quarantine", level, rule, text)


def _judge_failures(settings: AlertSettings, manifest: Manifest, summary: Summary) -> Finding:
    failed, asked = summary.unanswered_rows
    share = failed / asked if asked else 0.0
    level: Level = "breach" if share > settings.max_judge_failures else "ok"
    text = f"{summary.metric}: {failed:,} of {asked:,} rows got no usable verdict ({share:.1%})"
    if 2 * summary.failed_by_code > failed:
        text = f"{summary.metric}: its code failed on {failed:,} of {asked:,} rows ({share:.1%})"
    if summary.scored and finite(summary.mean) is None:
        level, text = "breach", f"{summary.metric}: its {summary.scored:,} scores have no mean"
    if refused := summary.status.get(Status.REFUSED, 0):
        text += f", {refused:,} of them refused by the judge"
    if level != "ok" and (why := summary.why_unanswered or next(iter(manifest.problems), "")):
        text += f": {why}"
    rule = f"{summary.metric}: at most {settings.max_judge_failures:.0%} of the rows unanswered"
    finding = _health(manifest, "judge_failures", level, rule, text)
    return finding.model_copy(
        update={"key": f"{finding.key}/{summary.metric}", "metric": summary.metric, "n": asked}
    )


def _one_of_panel(settings: AlertSettings, manifest: Manifest, name: str) -> Finding:
    """A warning for a judge of a panel: rows have values, but from fewer judges than planned."""
    own = [judge for one in manifest.metrics for judge in one.judges if judge.name == name]
    failed = sum(judge.failed for judge in own)
    asked = failed + sum(judge.scored for judge in own)
    share = failed / asked if asked else 0.0
    level: Level = "breach" if share > settings.max_judge_failures else "ok"
    text = f"{name}: no usable verdict on {failed:,} of {asked:,} row scores ({share:.1%})"
    refusals = [problem for problem in manifest.problems if problem.startswith(f"{name}: ")]
    if level != "ok" and refusals:
        text += f"; {refusals[0]}"
    rule = f"{name}: at most {settings.max_judge_failures:.0%} of its verdicts missing in the panel"
    finding = _health(manifest, "judge_failures", level, rule, text)
    key = f"{finding.key}/judge={name}"
    return finding.model_copy(update={"key": key, "n": asked, "severity": "warning"})


def _judge_drift(manifest: Manifest, drift: Drift) -> Finding:
    """A warning that lasts until a calibration shows no further change.

    It silences no metric rule, as a drop may have another cause. `judge_drift` computes how much of
    a drop the judge explains.
    """
    changed = [one for one in drift.metrics if _significantly_drifted(one)]
    states = [
        _changed(one) if one in changed else f"{one.metric}: {one.state}"
        for one in drift.metrics
        if one in changed or one.untold
    ]
    since = f"{drift.judge} on {drift.name}, {drift.earlier:%Y-%m-%d} to {drift.later:%Y-%m-%d}"
    why = "" if drift.same_fingerprint else " (with changed settings or prompts)"
    text = f"{since}: {'; '.join(states) or 'no drift shown'}{why}"
    rule = f"{drift.judge}: no change since its last calibration on {drift.name}"
    level: Level = "breach" if changed else "no_data" if drift.has_unknown else "ok"
    finding = _health(manifest, "judge_drift", level, rule, text)
    key = f"{finding.key}/judge={drift.judge}/set={drift.name}"
    affects = [one.metric for one in changed]
    return finding.model_copy(update={"key": key, "severity": "warning", "affects": affects})


def _significantly_drifted(one: MetricDrift) -> bool:
    """Whether p is at most 1%: with a calibration every night, 5% would be noise."""
    return one.drifted and (one.p_value is None or one.p_value <= SURE)


def _changed(one: MetricDrift) -> str:
    share = "" if one.changed.value is None else f", {one.changed.value:.0%} of verdicts changed"
    shown = {"quadratic kappa": one.figures.get("kappa_quadratic"), "AUC": one.figures.get("auc")}
    moves = [f"{name} {_move(found)}" for name, found in shown.items() if found]
    return f"{one.metric} drifted: {', '.join(moves)}{share}"


def _move(found: Figure) -> str:
    if found.value is None or found.low is None or found.high is None:
        return "not known"
    return f"moved by {found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def _health(
    manifest: Manifest,
    kind: FindingKind,
    level: Level,
    rule: str,
    text: str,
) -> Finding:
    key = f"{manifest.dataset}/{kind}"
    return Finding(key=key, kind=kind, level=level, rule=rule, message=text)
