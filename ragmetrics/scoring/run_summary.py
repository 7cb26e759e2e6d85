"""The summary of a run: its manifest, from the scores and the notes of its parts.

The notes have the usage by judge and metric, the refusals, and the errors of metrics. A sampled run
also reports its cost beside the estimated cost of all rows. The settings are stored without
what may be a secret: storage options, a retriever's request, the user and the query of an address.
API keys are read from environment variables and are not part of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from ragmetrics.config import Settings
from ragmetrics.metrics import bundled_metrics
from ragmetrics.records import (
    EMBEDDINGS,
    TOPIC,
    BudgetReport,
    JudgeInfo,
    JudgeSummary,
    Manifest,
    Segment,
    Status,
    Summary,
    Usage,
)
from ragmetrics.scoring.budget.plan import BudgetPlan, load_plan
from ragmetrics.scoring.metric_choice import chosen_metrics, fingerprints_by, judge_info, unpaid
from ragmetrics.scoring.part_notes import UsageReport, read_usage_report
from ragmetrics.scoring.quantiles import quantiles
from ragmetrics.scoring.sampling.estimate import PROBABILITY, STRATUM, sampled_mean
from ragmetrics.scoring.sampling.plan import SamplePlan, load_sample
from ragmetrics.scoring.sampling.report import sample_report
from ragmetrics.scoring.scores import (
    _REASON,
    MetricScores,
    find_segments,
    load_scores,
    watched_tags,
)
from ragmetrics.scoring.staging import Staged
from ragmetrics.stats import (
    Numbers,
    krippendorff_alpha,
    mean_interval,
)
from ragmetrics.storage import Files, RunRef
from ragmetrics.version import __version__

if TYPE_CHECKING:  # these imports are slow: only code that reads scores needs them
    import pandas as pd

HIDDEN = "(not shown)"
_WITH_SECRETS = {"storage_options", "headers", "body", "params"}
_USER = re.compile(r"(?<=://)[^/@\s]*@")
_ALWAYS_SHOWN = ("dataset", "logs", "store", "metrics", "judge", "judges", "embeddings")
"""Keys that are shown even when they have their default."""


def summarise_run(
    settings: Settings, files: Files, staged: Staged, now: datetime
) -> tuple[Manifest, dict[str, MetricScores]]:
    """The manifest of a scored run and its scores. Findings, which need earlier nights, are not in
    this manifest.
    """
    ref = staged.ref
    info, embedder = judge_info(settings)
    prints = fingerprints_by(settings, info, embedder)
    plan = load_sample(files, ref) if settings.samples else None
    scores = _load_all(settings, files, ref, plan)
    costs = read_usage_report(settings, files, ref)
    manifest = _manifest(settings, staged, now, info, costs)
    whole, segments = _summaries(settings, scores, prints, costs, info)
    told = [*staged.problems, *costs.problems()]
    failures = costs.unanswered.problems(whole, settings.alerts.limit("judge_failures"), told)
    results: dict[str, object] = {
        "metrics": whole,
        "segments": segments,
        "problems": [*told, *failures],
    }
    if settings.budget.binds:
        results["budget"] = _budget(load_plan(files, ref), manifest.usage, scores)
    if settings.sample and plan:
        by_metric = manifest.usage_by_metric
        results["sample"] = sample_report(settings.sample, plan, scores, whole, by_metric)
    return manifest.model_copy(update=results), scores


def _manifest(
    settings: Settings, staged: Staged, now: datetime, info: JudgeInfo, costs: UsageReport
) -> Manifest:
    """The manifest of a run without its results: what was scored when, by what, at what cost."""
    alone = [name for name in costs.usage if name != EMBEDDINGS]
    names = [info.name, info.also.name] if info.also else info.panel or alone
    free = unpaid(settings, names)
    return Manifest(
        dataset=settings.dataset,
        date=staged.ref.date,
        run=staged.ref.run,
        started_at=staged.started_at,
        finished_at=now,
        seen_at=staged.seen_at,
        taken_over=costs.taken_over,
        ragmetrics=__version__,
        source=staged.source,
        judge=info,
        shards=staged.ref.shards,
        metrics=[],
        segments=[],
        findings=[],
        worst=[],
        usage=sum((usage for name, usage in costs.usage.items() if name not in free), Usage()),
        usage_by_judge=costs.usage,
        usage_by_metric=costs.by_metric_without(free),
        changed_parameters=costs.changed_parameters,
        verdicts=costs.verdicts,
        settings=public_settings(settings),
        splits=dict(costs.splits),
    )


def _load_all(
    settings: Settings, files: Files, ref: RunRef, plan: SamplePlan | None
) -> dict[str, MetricScores]:
    """The scores of each metric of the settings."""
    tags = watched_tags(settings)
    return {
        metric.name: load_scores(
            files, ref, metric.name, tags, plan, higher_is_better=metric.higher_is_better
        )
        for metric in chosen_metrics(settings)
    }


def _summaries(
    settings: Settings,
    scores: Mapping[str, MetricScores],
    prints: Mapping[str, str],
    costs: UsageReport,
    info: JudgeInfo,
) -> tuple[list[Summary], list[Summary]]:
    """The summaries of all rows, by metric, and those of the segments."""
    whole = [
        summarise(scores[name], prints[name], None, info.panel).model_copy(
            update={"unanswered": costs.unanswered.reasons(name)}
        )
        for name in scores
    ]
    segments = [
        summarise(scores[name], prints[name], segment, info.panel)
        for segment in find_segments(next(iter(scores.values())), _shown_tags(settings))
        for name in scores
    ]
    return whole, segments


def _budget(
    plan: BudgetPlan | None, spent: Usage, scores: Mapping[str, MetricScores]
) -> BudgetReport | None:
    if plan is None:
        return None
    over = reduce(or_, (one.table["status"] == Status.OVER_BUDGET.value for one in scores.values()))
    questions = next(iter(scores.values())).table["question"][over]
    return BudgetReport(
        limits=plan.limits,
        estimated=plan.estimated,
        share=plan.share,
        spent=spent,
        rows_over=int(over.sum()),
        rows_cut_off=sum(plan.judges(question) for question in questions),
    )


def _shown_tags(settings: Settings) -> Sequence[str] | None:
    """The tags that scores are shown by; None: those with few values."""
    named = settings.segments
    return named if named is None or settings.topics is None else (*named, TOPIC)


_BINS = 10
_MOST_REASONS = 5


def summarise(
    scores: MetricScores,
    fingerprint: str,
    segment: Segment | None = None,
    panel: Sequence[str] = (),
) -> Summary:
    """Summarise a metric over all rows or one segment; `panel` are the names of the judges."""
    rows = scores.table
    if segment:
        rows = rows[rows[f"tag:{segment.tag}"] == segment.value]
    scored = rows[rows["status"] == Status.SCORED.value]
    values = scored["value"].to_numpy(dtype=np.float64)
    if STRATUM in rows:
        mean, sample = sampled_mean(rows)
    else:
        mean, sample = mean_interval(values, scored["question"].to_numpy(dtype=str)), None
    judges, agreement = _by_judge(rows, panel)
    known = bundled_metrics().get(scores.metric)
    reasons = Counter(rows[_REASON].dropna().tolist()).most_common(_MOST_REASONS)
    return Summary(
        metric=scores.metric,
        segment=segment,
        mean=mean.mean if mean else None,
        low=mean.low if mean else None,
        high=mean.high if mean else None,
        scored=len(scored),
        questions=mean.clusters if mean else 0,
        mde=mean.mde if mean else None,
        status=dict(sorted(Counter(rows["status"].tolist()).items())),
        not_applicable=dict(reasons),
        fingerprint=fingerprint,
        histogram=_histogram(values, _weights(scored)) if known is None or known.is_share else [],
        quantiles=quantiles(values) if known and known.unit == "ms" else [],
        judges=judges,
        agreement=agreement,
        spread=_mean_spread(rows),
        higher_is_better=scores.higher_is_better,
        sample=sample,
    )


def _weights(rows: pd.DataFrame) -> Numbers | None:
    """1 / inclusion probability of judged rows; None where all rows have the same weight."""
    if PROBABILITY not in rows:
        return None
    weights: Numbers = 1 / rows[PROBABILITY].to_numpy(dtype=np.float64)
    return weights


def _histogram(values: Numbers, weights: Numbers | None) -> list[int]:
    """Counts of ten bins. Weighted counts are scaled to the number of rows, and rounded."""
    clipped = np.clip(values, 0, 1)
    if weights is not None and len(weights):
        weights = weights * (len(weights) / weights.sum())
    counts, _ = np.histogram(clipped, bins=_BINS, range=(0, 1), weights=weights)
    return [round(count) for count in counts.tolist()]


def _mean_spread(rows: pd.DataFrame) -> float | None:
    """The mean spread of a row over the repeats of a judge."""
    spread = rows["spread"].to_numpy(dtype=np.float64, na_value=np.nan)
    known, weights = ~np.isnan(spread), _weights(rows)
    return _mean(spread[known], None if weights is None else weights[known])


def _mean(values: Numbers, weights: Numbers | None) -> float | None:
    if not len(values):
        return None
    return float(values.mean() if weights is None else weights @ values / weights.sum())


def _by_judge(rows: pd.DataFrame, panel: Sequence[str]) -> tuple[list[JudgeSummary], float | None]:
    """The mean of each judge of a panel, and the agreement of the judges."""
    if not panel:
        return [], None
    voted = rows[rows["votes"].notna()]
    failed = Counter(name for row in rows["failed"].dropna() for name in row)
    if voted.empty:
        return _of_cascade(rows, failed, panel) if failed else [], None
    votes = np.array([list(row) for row in voted["votes"]], dtype=np.float64)  # None becomes NaN
    weights, judges = _weights(voted), []
    for name, column in zip(panel, votes.T, strict=True):
        known = ~np.isnan(column)
        values = column[known]
        judges.append(
            JudgeSummary(
                name=name,
                mean=_mean(values, None if weights is None else weights[known]),
                scored=len(values),
                failed=failed[name],
            )
        )
    # The agreement is that of rows with equal weights.
    alike = votes[voted["compared"].ne(False).to_numpy()] if "compared" in voted else votes
    return judges, krippendorff_alpha(alike.T, level="interval") if len(alike) else None


def _of_cascade(
    rows: pd.DataFrame, failed: Counter[str], panel: Sequence[str]
) -> list[JudgeSummary]:
    """The judges of a cascade, some of which failed. They have no means of their own: each answers
    other requests.
    """
    scored = rows[rows["status"] == Status.SCORED.value]["failed"]
    without = Counter(name for row in scored.dropna() for name in row)
    return [
        JudgeSummary(name=name, mean=None, scored=len(scored) - without[name], failed=failed[name])
        for name in panel
    ]


def public_settings(settings: Settings) -> dict[str, Any]:
    """The settings of a night: the main ones, and all others that are not the defaults."""
    everything = settings.model_dump(mode="json")
    changed = settings.model_dump(mode="json", exclude_defaults=True)
    unused = "judge" if settings.judges else "judges"
    chosen = {
        name: changed.get(name) or _name_alone(everything[name])
        for name in everything
        if name in changed or (name in _ALWAYS_SHOWN and name != unused)
    }
    if settings.embeddings.name is None and "embeddings" not in changed:
        chosen.pop("embeddings")
    return {name: _without_secrets(name, value) for name, value in chosen.items()}


def _name_alone(value: Any) -> Any:
    named = isinstance(value, Mapping) and "name" in value
    return {"name": value["name"]} if named else value


def _without_secrets(name: str, value: Any) -> Any:
    if name in _WITH_SECRETS and value:
        return {key: HIDDEN for key in value} if isinstance(value, Mapping) else HIDDEN
    if isinstance(value, Mapping):
        return {key: _without_secrets(str(key), one) for key, one in value.items()}
    if name == "trace_url":  # a template without a secret: links show all of it
        return value
    if isinstance(value, list):
        return [_without_secrets(name, item) for item in value]
    return _without_user(value) if isinstance(value, str) else value


def _without_user(text: str) -> str:
    """The address without user and password; a web address also without its query."""
    text = _USER.sub("", text)
    parts = urlsplit(text) if text.startswith(("http://", "https://")) else None
    return parts._replace(query="", fragment="").geturl() if parts else text
