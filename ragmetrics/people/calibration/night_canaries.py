"""The canaries of a night: its judges are asked, within its budget, when it is published."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping

from ragmetrics.config import JudgeSettings, Settings
from ragmetrics.errors import RagmetricsError
from ragmetrics.judges import SpendLimiter, make_judges, names_of, use_budget
from ragmetrics.people.calibration.canaries import NAME, ask_canaries
from ragmetrics.records import LEAST_RIGHT, CanaryReport, Manifest, Usage
from ragmetrics.scoring import MetricScores
from ragmetrics.storage import Files

log = logging.getLogger(__name__)


def with_canaries(
    settings: Settings,
    store: Files,
    manifest: Manifest,
    scores: Mapping[str, MetricScores],
    before: Manifest | None,
) -> Manifest:
    """The manifest with what the night's judges said of the canaries. One that failed is noted
    wherever the judge is named.

    Only a judge that gave a verdict in the night is asked, within what is left of the budget. A
    judge that cannot be asked has no report. `before` is the manifest of the same run: its judges
    are not asked again. With the limit 0 none is.
    """
    least = settings.alerts.limit(NAME, LEAST_RIGHT)
    if not least:
        return manifest
    if before and before.canaries:
        reports, usages = before.canaries, before.usage_by_metric.get(NAME, {})
    else:
        told = _of_night(settings, store, manifest, scores)
        reports = {name: report for name, (report, _) in told.items() if report.asked}
        usages = {name: usage for name, (_, usage) in told.items()}
    failed = [
        f"{name}: {one.text}" if manifest.judge.panel or manifest.judge.also else one.text
        for name, one in reports.items()
        if one.fails(least)
    ]
    warning = f"cannot tell an obvious yes from an obvious no: {'; '.join(failed)}"
    note = "; ".join(filter(None, [manifest.judge.note, warning if failed else ""]))
    judge = manifest.judge.model_copy(update={"note": note})
    update = {"canaries": reports, "judge": judge}
    return _charged(manifest, usages).model_copy(update=update)


def _of_night(
    settings: Settings, store: Files, manifest: Manifest, scores: Mapping[str, MetricScores]
) -> dict[str, tuple[CanaryReport, Usage]]:
    """What the judges say that gave a verdict in a night, by name."""
    if not manifest.verdicts:
        return {}
    try:
        names = names_of(make_judges(settings))
    except RagmetricsError as error:  # as without the key, in a run that only publishes
        log.warning("canaries are not asked: %s", error)
        return {}
    with use_budget(_rest_of_budget(settings, manifest)):
        asked = {
            name: _try(settings, judge, scores, store)
            for name, judge in zip(names, settings.panel, strict=True)
            if name in manifest.verdicts
        }
    return {name: told for name, told in asked.items() if told}


def _try(
    settings: Settings, judge: JudgeSettings, scores: Mapping[str, MetricScores], store: Files
) -> tuple[CanaryReport, Usage] | None:
    """The report of a judge in a night; None where it cannot be asked, which the log says."""
    table = next(iter(scores.values())).table
    try:
        return ask_canaries(settings, judge, table["tag:language"], store)
    except RagmetricsError as error:
        log.warning("canaries of %s are not asked: %s", judge.name, error)
        return None


def _charged(manifest: Manifest, usages: Mapping[str, Usage]) -> Manifest:
    """The manifest with what the canaries cost in all its figures of usage."""
    if not usages:
        return manifest
    by_judge = dict(manifest.usage_by_judge)
    for name, usage in usages.items():
        by_judge[name] = by_judge.get(name, Usage()) + usage
    total = sum(usages.values(), manifest.usage)
    budget = manifest.budget and manifest.budget.model_copy(update={"spent": total})
    by_metric = {**manifest.usage_by_metric, NAME: dict(usages)}
    return manifest.model_copy(
        update={
            "usage": total,
            "usage_by_judge": by_judge,
            "usage_by_metric": by_metric,
            "budget": budget,
        }
    )


def _rest_of_budget(settings: Settings, manifest: Manifest) -> SpendLimiter | None:
    """What the night has left of its budget; None without one."""
    budget, spent = settings.budget, manifest.usage
    if not budget.binds:
        return None
    return SpendLimiter(
        requests=_rest(budget.max_requests, spent.requests),
        tokens=_rest(budget.max_tokens, spent.tokens),
        usd=_rest(budget.max_usd, spent.usd or 0.0),
    )


def _rest(most: float | None, used: float) -> float:
    return math.inf if most is None else max(0.0, most - used)
