"""How a night was sampled, and its cost beside the estimated cost of all rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from ragmetrics.config import SampleSettings
from ragmetrics.judges import EmbeddingClient
from ragmetrics.records import EMBEDDINGS, SampleReport, Status, Summary, Usage
from ragmetrics.scoring.row_costs import JUDGED
from ragmetrics.scoring.sampling.cheap_scores import cheap_fingerprint
from ragmetrics.scoring.sampling.plan import SamplePlan
from ragmetrics.scoring.scores import MetricScores

ByMetric = Mapping[str, Mapping[str, Usage]]


def sample_report(
    sample: SampleSettings,
    plan: SamplePlan,
    scores: Mapping[str, MetricScores],
    summaries: Sequence[Summary],
    by_metric: ByMetric,
) -> SampleReport:
    """How a night was sampled and what it cost."""
    judged = [one.table["status"].isin(JUDGED) for name, one in scores.items() if plan.group(name)]
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
    Returns None when a metric sent no request (all replies were cached, or no row was judged), and
    for parts of a night of `fuse: row`, which was removed: its requests were of several metrics.
    """
    whole = Usage()
    if not by_metric.keys() <= summaries.keys():
        return None
    for metric, of in by_metric.items():
        times = _times_as_many(plan, summaries[metric])
        for name, usage in of.items():
            sent = usage.requests * (EmbeddingClient.texts_per_request if name == EMBEDDINGS else 1)
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
        reasoning_tokens=round(usage.reasoning_tokens * factor),
        usd=None if usage.usd is None else usage.usd * factor,
    )
