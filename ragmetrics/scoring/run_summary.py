"""The summary of a run: its manifest, from the scores and the notes of its parts.

The notes have the usage by judge and metric, the refusals, and the errors of metrics. A sampled run
also reports its cost beside the estimated cost of all rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from ragmetrics.config import SampleSettings, Settings, public_settings
from ragmetrics.judges import TEXTS_PER_REQUEST
from ragmetrics.records import (
    EMBEDDINGS,
    TOPIC,
    UNSETTLED,
    BudgetReport,
    Manifest,
    SampleReport,
    Score,
    Status,
    Summary,
    Usage,
)
from ragmetrics.scoring.budget.plan import BudgetPlan, load_plan, unpaid
from ragmetrics.scoring.metric_choice import (
    chosen_metrics,
    judge_info,
    metric_fingerprint,
    score_families,
)
from ragmetrics.scoring.sampling.cheap_scores import cheap_fingerprint
from ragmetrics.scoring.sampling.plan import SamplePlan, load_sample
from ragmetrics.scoring.staging import Staged
from ragmetrics.scoring.summary import MetricScores, find_segments, load_scores, summarise
from ragmetrics.scoring.unanswered import UnansweredRows
from ragmetrics.storage import Files, RunRef, StoredPart
from ragmetrics.version import __version__

ByMetric = Mapping[str, Mapping[str, Usage]]
_JUDGED = (Status.SCORED, *UNSETTLED)


def summarise_run(
    settings: Settings, files: Files, staged: Staged, now: datetime
) -> tuple[Manifest, dict[str, MetricScores]]:
    """The manifest of a scored run and its scores. Findings, which need earlier nights, are not in
    this manifest.
    """
    ref = staged.ref
    info, embedder = judge_info(settings)
    chosen = chosen_metrics(settings)
    plan = load_sample(files, ref)
    tags = watched_tags(settings)
    scores = {
        m.name: load_scores(files, ref, m.name, tags, plan, higher_is_better=m.higher_is_better)
        for m in chosen
    }
    prints = {m.name: metric_fingerprint(m, info.fingerprint, embedder) for m in chosen}
    segments = find_segments(next(iter(scores.values())), _shown_tags(settings))
    costs = read_usage_report(settings, files, ref)
    free = unpaid(settings, info.panel or [name for name in costs.usage if name != EMBEDDINGS])
    spent = sum((one for name, one in costs.usage.items() if name not in free), Usage())
    summaries = [
        summarise(scores[name], prints[name], None, info.panel).model_copy(
            update={"unanswered": costs.unanswered.reasons(name)}
        )
        for name in scores
    ]
    told = [*staged.problems, *costs.problems()]
    failures = costs.unanswered.problems(summaries, settings.alerts.limit("judge_failures"), told)
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
        usage=spent,
        usage_by_judge=costs.usage,
        usage_by_metric=by_metric,
        budget=_budget(load_plan(files, ref), spent, scores),
        sample=sample_report(settings.sample, plan, scores, summaries, by_metric),
        problems=[*told, *failures],
        changed_parameters=costs.changed_parameters,
        settings=public_settings(settings),
        splits=dict(costs.splits),
    )
    return manifest, scores


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


def watched_tags(settings: Settings) -> set[str]:
    """The tags that the settings name. They are loaded even when few rows have them."""
    ruled = {rule.by for rule in settings.alerts.rules or () if rule.by}
    sampled = settings.sample.strata if settings.sample else ()
    named = {*(settings.segments or ()), *sampled, *(settings.alerts.mix_tags or ())}
    return ruled | named | ({TOPIC} if settings.topics else set())


class MetricErrors:
    """Counts failed rows per metric and stores the first error of each metric."""

    def __init__(self) -> None:
        self._rows: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def note(self, metric: str, row: str, score: Score) -> None:
        """Count a score if its metric failed."""
        if score.status is Status.METRIC_FAILED:
            self._rows[metric] += 1
            self._first.setdefault(metric, f"row {row}: {score.reason}")

    def add(self, notes: Mapping[str, Any]) -> None:
        """Add the counts from the notes of a part."""
        for metric, one in notes.items():
            self._rows[metric] += one["rows"]
            self._first.setdefault(metric, one["first"])

    def notes(self) -> dict[str, Any]:
        """The counts as they are stored in the notes of a part."""
        return {
            metric: {"rows": rows, "first": self._first[metric]}
            for metric, rows in self._rows.items()
        }

    def problems(self) -> list[str]:
        """The errors as sentences."""
        return [
            f"metric {metric} failed on {rows:,} row{'' if rows == 1 else 's'}, "
            f"first on {self._first[metric]}"
            for metric, rows in self._rows.items()
        ]


@dataclass
class UsageReport:
    """The notes of all parts of a run."""

    usage: dict[str, Usage] = field(default_factory=dict)
    """Usage by judge; embeddings have a key of their own."""
    by_metric: dict[str, dict[str, Usage]] = field(default_factory=dict)
    """Usage by metric, then by judge."""
    splits: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    """Maps the name of a judge to the reason why it refused."""
    overdue: str = ""
    """Message if the deadline of the run passed before all requests were sent."""
    metric_errors: MetricErrors = field(default_factory=MetricErrors)
    unanswered: UnansweredRows = field(default_factory=UnansweredRows)
    changed_parameters: dict[str, str] = field(default_factory=dict)
    """What judges were sent in place of parameters that they refused, by name of the judge."""
    taken_over: int = 0
    """Number of parts that were reused from an earlier run of the night."""

    def add(self, usage_by_judge: Mapping[str, Mapping[str, Any]]) -> None:
        """Add the usage of a part, by judge and by metric."""
        for judge, by_metric in usage_by_judge.items():
            for metric, counted in by_metric.items():
                usage = Usage.model_validate(counted)
                self.usage[judge] = self.usage.get(judge, Usage()) + usage
                of_metric = self.by_metric.setdefault(metric, {})
                of_metric[judge] = of_metric.get(judge, Usage()) + usage

    def by_metric_without(self, free: set[str]) -> dict[str, dict[str, Usage]]:
        """Usage by metric and judge without the `free` judges; metrics without usage are left
        out.
        """
        found = {
            metric: {name: usage for name, usage in of.items() if name not in free}
            for metric, of in self.by_metric.items()
        }
        return {metric: of for metric, of in found.items() if of}

    def problems(self) -> list[str]:
        """Refusals, errors of metrics and a missed deadline, as sentences."""
        refused = [f"{name}: {reason}" for name, reason in self.refused.items()]
        found = [*refused, *self.metric_errors.problems()]
        if not self.overdue:
            return found
        again = "rows without a verdict are judge_failed, and a rerun requests only these"
        return [*found, f"{self.overdue}: {again}"]


def read_usage_report(settings: Settings, files: Files, ref: RunRef) -> UsageReport:
    """Read the notes of all parts that exist."""
    costs, families = UsageReport(), score_families(settings)
    for shard in range(ref.shards):
        of_shard: Counter[str] = Counter()
        for family in families:
            path = ref.scores(family[0], shard)
            if not files.exists(path):
                continue
            notes = StoredPart(files, path).notes()
            costs.add(notes["usage"])
            costs.refused.update(notes["refused"])
            costs.overdue = notes.get("overdue") or costs.overdue  # older parts do not say
            costs.metric_errors.add(notes.get("metric_errors", {}))
            costs.unanswered.add(notes.get("unanswered", {}))
            costs.changed_parameters.update(notes.get("changed_parameters", {}))
            costs.taken_over += "taken_over" in notes
            # Families split the same texts: the largest count is the count of the shard.
            of_shard |= Counter(notes["splits"])
        costs.splits.update(of_shard)
    return costs


def sample_report(
    sample: SampleSettings | None,
    plan: SamplePlan | None,
    scores: Mapping[str, MetricScores],
    summaries: Sequence[Summary],
    by_metric: ByMetric,
) -> SampleReport | None:
    """How a night was sampled and what it cost; None when all rows were judged."""
    if sample is None or plan is None:
        return None
    judged = [one.table["status"].isin(_JUDGED) for name, one in scores.items() if plan.group(name)]
    return SampleReport(
        rows=sample.rows,
        half_width=sample.half_width,
        strata=list(sample.strata),
        seed=sample.seed,
        cheap=plan.cheap_note,
        learned=bool(plan.cheap),
        judged=int(reduce(or_, judged).sum()) if judged else 0,
        spent=sum((one for of in by_metric.values() for one in of.values()), Usage()),
        whole=whole_cost(by_metric, plan, {summary.metric: summary for summary in summaries}),
        draw=plan.draw,
        cheap_fingerprint=cheap_fingerprint(plan.cheap) if plan.draw == "active" else "",
        uniform={name: one.uniform for one in plan.groups if one.uniform for name in one.metrics},
    )


def whole_cost(
    by_metric: ByMetric, plan: SamplePlan, summaries: Mapping[str, Summary]
) -> Usage | None:
    """The estimated cost of judging all rows.

    It assumes that rows outside the sample need as many requests as judged rows, at the same cost
    per request. Equal requests of several rows are sent once, so the true cost may be lower.
    Returns None when a metric sent no request (all replies were cached, or no row was judged).
    """
    whole = Usage()
    for label, of in by_metric.items():
        # Of a run with `fuse: row`, which was removed, a label names several metrics.
        times = max(_times_as_many(plan, summaries[name]) for name in label.split(" + "))
        for name, usage in of.items():
            sent = usage.requests * (TEXTS_PER_REQUEST if name == EMBEDDINGS else 1)
            wanted = sent + usage.answered_from_store
            factor = times if wanted else 1.0
            if factor > 1 and (not sent or math.isinf(factor)):
                return None
            whole += usage if factor == 1 else _scaled(usage, 1 + (factor - 1) * wanted / sent)
    return whole


def _times_as_many(plan: SamplePlan, summary: Summary) -> float:
    """Scorable rows divided by judged rows of a metric; 1 when all rows were judged."""
    group = plan.group(summary.metric)
    if group is None or not group.rows:
        return 1.0
    judged = group.judged - summary.status.get(Status.OVER_BUDGET, 0)
    return group.rows / judged if judged > 0 else math.inf


def _scaled(usage: Usage, factor: float) -> Usage:
    return Usage(
        requests=round(usage.requests * factor),
        prompt_tokens=round(usage.prompt_tokens * factor),
        cached_tokens=round(usage.cached_tokens * factor),
        completion_tokens=round(usage.completion_tokens * factor),
        usd=None if usage.usd is None else usage.usd * factor,
    )
