"""Publishes a run: computes its summaries and findings, and writes its manifest."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import cache, partial
from typing import Any

from ragmetrics.comparison import cached_load, find_moves, find_serving, night_before
from ragmetrics.config import Settings
from ragmetrics.delivery import AlertHistory, alert_history
from ragmetrics.errors import StoreError
from ragmetrics.passages import IdReader, topics_of_night
from ragmetrics.people import History, fixed_sets, load_history, with_canaries, with_people
from ragmetrics.pipeline.lost_passages import lost_passages_of
from ragmetrics.pipeline.store_references import COMPARED_NIGHTS, NEEDED_NIGHTS
from ragmetrics.records import (
    Finding,
    JudgeBridge,
    Manifest,
    WorstRow,
    across_change,
    trace_address,
)
from ragmetrics.rules import (
    SEGMENT_DAYS,
    NightContext,
    evaluate_rules,
    explain_findings,
    for_later_nights,
    shutdowns_of,
    try_topic_changes,
    with_movements,
)
from ragmetrics.scoring import MetricScores, Staged, earlier_scores, find_bridge, summarise_run
from ragmetrics.storage import (
    Files,
    RunIndex,
    RunRef,
    Runs,
    collecting_damage,
    open_store,
    scored_rows,
    trailing_nights,
)

WORST = 10
"""Rows shown per metric."""
log = logging.getLogger(__name__)
_NOTIFIED = ("transition", "escalation", "ended")
"""Fields of a finding that say which message was sent about it."""


def publish_run(
    settings: Settings,
    staged: Staged,
    now: datetime,
    problems: Sequence[str] = (),
    *,
    silent: bool = False,
    flow_run: str = "",
) -> Manifest:
    """Write the run's manifest from its parts. A repetition gives the same numbers.

    The manifest contains `now` as the end of the run, `flow_run` as its address in Prefect, and
    `problems` as the reasons why parts are missing. Rows of a missing part are `judge_failed`.
    A night sends no message if `silent`, or if it is older than the newest one and was published
    before. The first run of an older night is `late` and sends its message. Alert states follow
    from the nights before it. If the manifest cannot be written, that is logged, alerts are sent
    all the same, and `show` writes it.
    """
    files = open_store(settings)
    with collecting_damage() as damaged:
        manifest = _manifest(settings, files, staged, now, problems, silent=silent)
    manifest = manifest.model_copy(update={"flow_run": flow_run, "damaged": damaged})
    try:
        Runs(files).save(manifest)
    except StoreError as error:
        log.error("the manifest of night %s could not be written: %s", manifest.date, error)
    return manifest


def _manifest(
    settings: Settings,
    files: Files,
    staged: Staged,
    now: datetime,
    problems: Sequence[str],
    *,
    silent: bool,
) -> Manifest:
    """The manifest of a run, with its findings."""
    manifest, scores = summarise_run(settings, files, staged, now)
    distinct = dict.fromkeys([*problems, *manifest.problems])
    ends = shutdowns_of(settings) if manifest.usage.requests and not silent else None
    manifest = manifest.model_copy(update={"problems": list(distinct), "shutdowns": ends})
    manifest = for_later_nights(settings.alerts, manifest, scores)
    manifest, superseded = Runs(files).superseding(manifest)
    index = RunIndex(files)
    past = Runs(files).outlines(before=manifest.date, last=NEEDED_NIGHTS, months=index)
    alerts = alert_history(files, settings.alerts, manifest.date, past)
    manifest = _told_or_silent(files, manifest, index, queued=alerts.is_queued, silent=silent)
    published = Runs(files).find(staged.ref)
    folded, alerts = alerts.before, alerts.after(superseded, published)
    manifest = manifest.model_copy(update={"alerts": alerts.before.snapshot})
    history = load_history(files)
    if manifest.verdicts:
        manifest = with_canaries(settings, files, manifest, scores, published)
    bridge, spent = find_bridge(settings, files, manifest, scores, alerts.nights)
    manifest = manifest.model_copy(update={"bridge": bridge, "bridged": spent})
    compared = _compared(settings, alerts, manifest.date)
    earlier = across_change(compared, bridge)
    states = alerts.states(earlier, silent=manifest.silent)
    if settings.labels or settings.feedback_labels:
        manifest = with_people(settings, files, manifest, compared, history.calibrations)
    night = _night(settings, files, history, manifest, scores, earlier, bridge)
    told = states.notified
    past = across_change(alerts.nights, bridge)
    night = replace(night, history=past, notified=told, states=folded.states)
    findings = alerts.judge(states, evaluate_rules(settings.alerts, night), silent=manifest.silent)
    findings, falls = explain_findings(settings.alerts, night, findings)
    findings = _shown(findings, silent=manifest.silent)
    manifest = manifest.model_copy(update={"metrics": with_movements(night)})
    return manifest.model_copy(
        update={
            "findings": _as_notified(findings, superseded, published),
            "falls": falls,
            **_besides_findings(settings, files, night, manifest, findings),
        }
    )


def _besides_findings(
    settings: Settings,
    files: Files,
    night: NightContext,
    manifest: Manifest,
    findings: Sequence[Finding],
) -> dict[str, Any]:
    """What pages show of a night besides its findings, as fields of the manifest."""
    topics = topics_of_night(settings, files, manifest.date) if settings.topics else None
    told = not (manifest.silent or manifest.late)
    return {
        "moves": find_moves(manifest, night.earlier, night.load),
        "lost_passages": lost_passages_of(
            settings, files, manifest, night.earlier, findings, ask=told
        )
        if night.earlier
        else None,
        "topics": try_topic_changes(
            settings.alerts, files, night, topics, redact=settings.redacts_messages
        )
        if topics
        else None,
        "worst": _worst(settings, files, night),
        "labelled": night.fixed_sets.spent(manifest) if night.fixed_sets else None,
    }


def _night(
    settings: Settings,
    files: Files,
    history: History,
    manifest: Manifest,
    scores: dict[str, MetricScores],
    earlier: Sequence[Manifest],
    bridge: JudgeBridge | None,
) -> NightContext:
    """The context in which the rules are evaluated."""
    return NightContext(
        manifest,
        scores,
        earlier,
        cached_load(
            lambda one, metric: earlier_scores(settings, files, RunRef.of(one), metric).moved(one),
            manifest,
            night_before(manifest, earlier),
            scores,
        ),
        history.newest_drifts(manifest.judge),
        fixed_sets=fixed_sets(settings, files, history.calibrations)
        if settings.alerts.drift_set
        else None,
        ids=IdReader(files),
        mix_tags=settings.alerts.mix_tags,
        find_run=cache(lambda run: _moved_run(Runs(files).named(run), bridge)),
        serving=cache(partial(find_serving, files, manifest.dataset, manifest.date)),
    )


def _moved_run(run: Manifest | None, bridge: JudgeBridge | None) -> Manifest | None:
    return across_change([run], bridge)[0] if run else None


def _compared(settings: Settings, alerts: AlertHistory, day: date) -> list[Manifest]:
    """Outlines of the compared nights; the last ones in full if a rule needs their segments."""
    compared = [*alerts.nights[-COMPARED_NIGHTS:]]
    if not any(rule.by for rule in settings.alerts.rules or ()):
        return compared
    recent = trailing_nights(compared, day, SEGMENT_DAYS)
    whole = alerts.renamed(Runs(alerts.files).in_full(recent))
    return [*compared[: len(compared) - len(recent)], *whole]


def _told_or_silent(
    files: Files, manifest: Manifest, index: RunIndex, *, queued: bool, silent: bool
) -> Manifest:
    """The manifest with a note whether it is silent, or late."""
    if silent:
        return manifest.model_copy(update={"silent": True})
    told = [one for one in Runs(files).later(manifest.date, index) if not one.silent]
    if not told:
        return manifest.model_copy(update={"silent": False})
    runs = Runs(files).of(manifest.date)
    newest = max(one.finished_at for one in told)  # it told what runs before it had not
    untold = any(_has_message(one) and one.finished_at >= newest for one in runs)
    late = not queued and (untold or not runs)
    return manifest.model_copy(update={"late": late, "silent": not late})


def _has_message(night: Manifest) -> bool:
    """Whether a run of this version has anything to tell."""
    telling = not night.silent and night.alerts is not None
    return telling and any(one.transition for one in night.findings)


def _shown(findings: list[Finding], *, silent: bool) -> list[Finding]:
    """The findings; of a silent run without transitions."""
    if not silent:
        return findings
    return [finding.model_copy(update={"transition": None}) for finding in findings]


def _as_notified(findings: Sequence[Finding], *before: Manifest | None) -> list[Finding]:
    """The findings with the transitions that earlier runs of the night sent: a rerun sends nothing
    again, but its manifest shows what was sent.
    """
    notified = {
        (finding.key, finding.state): {name: getattr(finding, name) for name in _NOTIFIED}
        for manifest in before
        for finding in (manifest.findings if manifest else ())
        if finding.transition
    }
    return [
        finding
        if finding.transition
        else finding.model_copy(update=notified.get((finding.key, finding.state), {}))
        for finding in findings
    ]


def _worst(settings: Settings, files: Files, night: NightContext) -> list[WorstRow]:
    """The worst rows of each metric. Among equal rows, those that fell since the night before come
    first.
    """
    ref = RunRef.of(night.manifest)
    lowest = [
        (name, *place)
        for name, metric_scores in night.scores.items()
        for place in metric_scores.worst(WORST, _night_before(night, name))
    ]
    wanted: dict[int, set[int]] = {}
    for _, shard, position, _ in lowest:
        wanted.setdefault(shard, set()).add(position)
    rows = scored_rows(files, ref, [], wanted)
    return [
        WorstRow(
            id=rows[shard, position].row.id,
            metric=name,
            value=value,
            user_input=rows[shard, position].row.user_input,
            shard=shard,
            position=position,
            trace_url=trace_address(settings.trace_url, rows[shard, position].row),
        )
        for name, shard, position, value in lowest
    ]


def _night_before(night: NightContext, metric: str) -> dict[str, list[float]]:
    now = night.manifest.summary(metric)
    for earlier_night in reversed(night.earlier):
        summary = earlier_night.summary(metric)
        if summary and now and summary.scored and summary.fingerprint == now.fingerprint:
            try:
                return night.load(earlier_night, metric).by_question()
            except StoreError as error:  # they only order rows with equal scores
                log.warning("%s: the scores of the night before cannot be read: %s", metric, error)
                return {}
    return {}
