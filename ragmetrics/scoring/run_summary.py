"""The summary of a run: builds its manifest from the parts that were scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import reduce
from operator import or_

from ragmetrics.config import Settings, public_settings
from ragmetrics.model import EMBEDDINGS, BudgetReport, JudgeInfo, Manifest, Status, Usage
from ragmetrics.scoring.budget.plan import BudgetPlan, load_plan, pays_for_embeddings
from ragmetrics.scoring.metric_choice import chosen_metrics, judge_info, metric_fingerprint
from ragmetrics.scoring.sampling.plan import load_sample
from ragmetrics.scoring.staging import Staged
from ragmetrics.scoring.summary import MetricScores, find_segments, load_scores, summarise
from ragmetrics.scoring.usage_report import UsageReport, read_usage_report, sample_report
from ragmetrics.storage import Files
from ragmetrics.version import __version__


def summarise_run(
    settings: Settings, files: Files, staged: Staged, now: datetime
) -> tuple[Manifest, dict[str, MetricScores]]:
    """The manifest of a scored run and its scores. Findings, which need earlier nights, are not in
    this manifest.
    """
    ref = staged.ref
    info, embedder = judge_info(settings)
    chosen = chosen_metrics(settings)
    tags = watched_tags(settings)
    plan = load_sample(files, ref)
    scores = {
        metric.name: load_scores(
            files, ref, metric.name, tags, plan, higher_is_better=metric.higher_is_better
        )
        for metric in chosen
    }
    prints = {m.name: metric_fingerprint(m, info.fingerprint, embedder) for m in chosen}
    segments = find_segments(next(iter(scores.values())), settings.segments)
    costs = read_usage_report(settings, files, ref)
    free = _free(settings, costs.usage, info)
    summaries = [summarise(scores[name], prints[name], None, info.panel) for name in scores]
    by_metric = costs.by_metric_without(free)
    manifest = Manifest(
        dataset=settings.dataset,
        date=ref.date,
        run=ref.run,
        started_at=staged.started_at,
        finished_at=now,
        seen_at=staged.seen_at,
        taken_over=costs.taken_over,
        ragmetrics=__version__,
        source=staged.source,
        judge=info,
        shards=ref.shards,
        metrics=summaries,
        segments=[
            summarise(scores[name], prints[name], segment, info.panel)
            for segment in segments
            for name in scores
        ],
        findings=[],
        worst=[],
        usage=sum((one for name, one in costs.usage.items() if name not in free), Usage()),
        usage_by_judge=costs.usage,
        usage_by_metric=by_metric,
        budget=_budget(load_plan(files, ref), costs, free, scores),
        sample=sample_report(settings.sample, plan, scores, summaries, by_metric),
        problems=[*staged.problems, *costs.problems()],
        settings=public_settings(settings),
        splits=dict(costs.splits),
    )
    return manifest, scores


def _free(settings: Settings, asked: Iterable[str], info: JudgeInfo) -> set[str]:
    """The judges and embeddings of a run that cost nothing, because they use no network."""
    judges = info.panel or [name for name in asked if name != EMBEDDINGS]
    free = {name for name, one in zip(judges, settings.panel, strict=False) if not one.remote}
    return free if pays_for_embeddings(settings) else free | {EMBEDDINGS}


def _budget(
    plan: BudgetPlan | None, costs: UsageReport, free: set[str], scores: Mapping[str, MetricScores]
) -> BudgetReport | None:
    if plan is None:
        return None
    over = reduce(or_, (one.table["status"] == Status.OVER_BUDGET.value for one in scores.values()))
    questions = next(iter(scores.values())).table["question"][over]
    return BudgetReport(
        limits=plan.limits,
        estimated=plan.estimated,
        share=plan.share,
        spent=sum((one for name, one in costs.usage.items() if name not in free), Usage()),
        rows_over=int(over.sum()),
        rows_cut_off=sum(plan.judges(question) for question in questions),
    )


def watched_tags(settings: Settings) -> set[str]:
    """The tags that the settings name. They are loaded even when few rows have them."""
    ruled = {rule.by for rule in settings.alerts.rules or () if rule.by}
    sampled = settings.sample.strata if settings.sample else ()
    named = {*(settings.segments or ()), *sampled, *(settings.alerts.mix_tags or ())}
    return ruled | named
