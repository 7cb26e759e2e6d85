"""Publishing: a run's summaries and findings, and its manifest."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import date, datetime
from functools import cache, partial

from ragmetrics.alerts import (
    NO_SILENCES,
    SEGMENT_DAYS,
    AlertStore,
    IdReader,
    NightContext,
    advance_states,
    evaluate_rules,
    explain_root_cause,
    find_unwatched_drops,
    load_alerts,
    notifications,
    silences,
    with_missed_nights,
    with_movements,
)
from ragmetrics.calibration import History, fixed_sets, load_history
from ragmetrics.comparison import cached_load, find_moves, night_before
from ragmetrics.config import Settings
from ragmetrics.errors import StoreError
from ragmetrics.model import Finding, Manifest, WorstRow
from ragmetrics.scoring import MetricScores, Staged, load_scores, summarise_run, watched_tags
from ragmetrics.storage import (
    Files,
    RunIndex,
    find_manifest,
    find_serving,
    in_full,
    named_run,
    open_store,
    outlines,
    ref_of,
    save_manifest,
    scored_rows,
    superseding,
    trailing_nights,
)

WORST = 10
"""Rows shown per metric."""
_COMPARED_NIGHTS = 60
log = logging.getLogger(__name__)
_TOLD = ("transition", "escalation", "ended")
"""Fields of a finding that say what people were told of it."""


def publish_run(
    settings: Settings,
    staged: Staged,
    now: datetime,
    problems: Sequence[str] = (),
    *,
    silent: bool = False,
    flow_run: str = "",
) -> Manifest:
    """Write the run's manifest from its parts; repeating it gives the same numbers.

    `now` is noted as the end of the run, `flow_run` as where Prefect shows it, `problems` as the
    reasons why parts are missing: the rows of a missing part count as `judge_failed`.
    A night of the past, before the newest that the alerts know or `silent` by request, has the
    alerts that follow from the nights before it, and tells nobody. A manifest that cannot be
    written keeps nobody from being alerted: that is logged, and `show` writes it.
    """
    files = open_store(settings)
    manifest, scores = summarise_run(settings, files, staged, now)
    told = dict.fromkeys([*problems, *manifest.problems])
    manifest = manifest.model_copy(update={"problems": list(told), "flow_run": flow_run})
    manifest, superseded = superseding(files, manifest)
    months, history, book = RunIndex(files), load_history(files), load_alerts(files)
    silent = silent or (book.night is not None and manifest.date < book.night)
    earlier = _earlier(settings, files, months, manifest.date)
    if silent:
        book = _replayed(earlier, settings.alerts.remind_days)
    night = _night(settings, files, history, manifest, scores, earlier, book)
    findings = _findings(settings, files, night, book, silent=silent)
    manifest = manifest.model_copy(update={"metrics": with_movements(night)})
    manifest = manifest.model_copy(
        update={
            "findings": _as_told(findings, superseded, find_manifest(files, staged.ref)),
            "falls": find_unwatched_drops(settings.alerts, night, findings),
            "moves": find_moves(manifest, night.earlier, night.load),
            "worst": _worst(files, night),
            "labelled": night.fixed_sets.spent(manifest) if night.fixed_sets else None,
        }
    )
    try:
        save_manifest(files, manifest)
    except StoreError as error:
        log.error("night %s is not in the store yet: %s", manifest.date, error)
    return manifest


def _night(
    settings: Settings,
    files: Files,
    history: History,
    manifest: Manifest,
    scores: dict[str, MetricScores],
    earlier: Sequence[Manifest],
    book: AlertStore,
) -> NightContext:
    """What the rules look at."""
    return NightContext(
        manifest,
        scores,
        earlier,
        cached_load(
            lambda one, metric: load_scores(files, ref_of(one), metric, watched_tags(settings)),
            manifest,
            night_before(manifest, earlier),
            scores,
        ),
        history.newest_drifts(manifest.judge),
        fixed_sets=fixed_sets(settings, files, history.calibrations),
        ids=IdReader(files),
        notified=notifications(book, manifest.date),
        mix_tags=settings.alerts.mix_tags,
        find_run=cache(partial(named_run, files)),
        serving=cache(partial(find_serving, files, manifest.dataset, manifest.date)),
    )


def _earlier(settings: Settings, files: Files, months: RunIndex, day: date) -> list[Manifest]:
    """The nights before in outline; in full the last ones, where a rule asks for their segments."""
    found = outlines(files, before=day, last=_COMPARED_NIGHTS, months=months)
    if not any(rule.by for rule in settings.alerts.rules or ()):
        return found
    recent = trailing_nights(found, day, SEGMENT_DAYS)
    return [*found[: len(found) - len(recent)], *in_full(files, recent)]


def _findings(
    settings: Settings, files: Files, night: NightContext, book: AlertStore, *, silent: bool
) -> list[Finding]:
    """What the rules say of the night, after a book of alerts; told to nobody if it is silent."""
    days = settings.alerts.remind_days
    today = evaluate_rules(settings.alerts, night)
    if not silent:
        book = with_missed_nights(book, night.earlier, today, days)
    quiet = NO_SILENCES if silent else silences(files)
    _, findings = advance_states(book, today, night.manifest.date, days, quiet, night.manifest.run)
    findings = explain_root_cause(night, findings)
    if not silent:
        return findings
    return [one.model_copy(update={"transition": None}) for one in findings]


def _replayed(earlier: Sequence[Manifest], remind_days: int) -> AlertStore:
    """The alerts as they stood after some nights, by the findings of those alone."""
    book = AlertStore()
    for night in earlier:
        book, _ = advance_states(book, night.findings, night.date, remind_days, run=night.run)
    return book


def _as_told(findings: Sequence[Finding], *before: Manifest | None) -> list[Finding]:
    """A rerun tells nothing again, but the night's record keeps what it told the first time."""
    told = {
        (one.key, one.state): {name: getattr(one, name) for name in _TOLD}
        for manifest in before
        for one in (manifest.findings if manifest else ())
        if one.transition
    }
    return [
        one if one.transition else one.model_copy(update=told.get((one.key, one.state), {}))
        for one in findings
    ]


def _worst(files: Files, night: NightContext) -> list[WorstRow]:
    """The lowest rows of each metric; among equals, those that fell since the night before."""
    ref = ref_of(night.manifest)
    lowest = [
        (name, *place)
        for name, one in night.scores.items()
        for place in one.worst(WORST, _night_before(night, name))
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
        )
        for name, shard, position, value in lowest
    ]


def _night_before(night: NightContext, metric: str) -> dict[str, list[float]]:
    now = night.manifest.summary(metric)
    for one in reversed(night.earlier):
        summary = one.summary(metric)
        if summary and now and summary.scored and summary.fingerprint == now.fingerprint:
            try:
                return night.load(one, metric).by_question()
            except StoreError as error:  # it only orders rows that are as low
                log.warning("%s: the scores of the night before cannot be read: %s", metric, error)
                return {}
    return {}
