"""What a sample cost, and about what all rows would have cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from ragmetrics.protocol import Status
from ragmetrics.records import SampleReport, Summary, Usage
from ragmetrics.sample_plan import SamplePlan
from ragmetrics.sample_settings import SampleSettings
from ragmetrics.summarise import MetricScores

ByMetric = Mapping[str, Mapping[str, Usage]]
_JUDGED = (Status.SCORED, Status.UNREADABLE, Status.JUDGE_FAILED)


def report_of(
    sample: SampleSettings | None,
    plan: SamplePlan | None,
    scores: Mapping[str, MetricScores],
    summaries: Sequence[Summary],
    by_metric: ByMetric,
) -> SampleReport | None:
    """How a night was sampled and what that cost; None where all rows were judged."""
    if sample is None or plan is None:
        return None
    judged = [one.table["status"].isin(_JUDGED) for name, one in scores.items() if plan.group(name)]
    return SampleReport(
        rows=sample.rows,
        half_width=sample.half_width,
        strata=list(sample.strata),
        seed=sample.seed,
        judged=int(reduce(or_, judged).sum()) if judged else 0,
        spent=sum((one for of in by_metric.values() for one in of.values()), Usage()),
        whole=whole_cost(by_metric, {one.metric: one for one in summaries}),
    )


def whole_cost(by_metric: ByMetric, summaries: Mapping[str, Summary]) -> Usage | None:
    """About what all rows would have cost: each row that was not judged as many requests as a
    judged one, at what a request cost that was sent.

    Equal requests of several rows would have been asked once, so it may be less. None where all
    answers to a metric were known, so that nothing says what they cost.
    """
    whole = Usage()
    for label, of in by_metric.items():
        status = summaries[label.split(" + ")[0]].status
        judged, left = sum(status.get(one, 0) for one in _JUDGED), status.get(Status.NOT_SAMPLED, 0)
        for usage in of.values():
            whole += usage
            wanted = usage.requests + usage.answered_from_store
            if not (judged and left and wanted):
                continue
            if not usage.requests:
                return None
            whole += _times(usage, wanted * left / judged / usage.requests)
    return whole


def _times(usage: Usage, factor: float) -> Usage:
    return Usage(
        requests=round(usage.requests * factor),
        prompt_tokens=round(usage.prompt_tokens * factor),
        cached_tokens=round(usage.cached_tokens * factor),
        completion_tokens=round(usage.completion_tokens * factor),
        usd=None if usage.usd is None else usage.usd * factor,
    )
