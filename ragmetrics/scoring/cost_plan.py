"""What a mean with a given interval costs, by each way to get it, from the last nights' own data.

    rows of a way     what its interval needs (`rows_to_judge`), from the standard deviation
                      and the correlation of the last comparable nights
    dollars per row   dollars of these nights / rows that were judged in them
    cascade           the rows of a plain sample; dollars per row of the nights with a cascade. The
                      other ways are priced as if its last judge gave every verdict
    decisions         all rows; dollars per row of the nights that decision models judged

Dollars per row include what these nights reused from the store: the plan expects as much reuse.
Each metric is planned by itself. What the nights do not show is said, not guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.records import Manifest, SampledMean, Status, Summary
from ragmetrics.scoring.row_costs import (
    has_cascade,
    judged,
    paid_for,
    priced,
    usd_by_decisions,
    usd_per_row,
)
from ragmetrics.scoring.sampling.cheap_scores import learned_correlations
from ragmetrics.scoring.sampling.prediction_powered import rows_to_judge
from ragmetrics.scoring.sampling.sample_size import FEWEST, comparable, known
from ragmetrics.storage import Files

_95 = 1.96
_NO_CASCADE = "a night with `aggregate: cascade`"


@dataclass(frozen=True)
class Way:
    """One way to get the mean of a metric."""

    name: str
    rows: int | None = None
    """Rows that the judge would score; None: not known."""
    usd: float | None = None
    """Dollars per night; None: not known."""
    half_width: float | None = None
    """Half width of the interval: as wanted, or what all rows give; None: not known."""
    needs: str = ""
    """What is missing to know rows or dollars; empty if nothing is."""


@dataclass(frozen=True)
class MetricCosts:
    """The ways of one metric, and its newest night."""

    metric: str
    rows: int
    """Rows of the newest night that the metric can score."""
    judged: int
    """Rows of the newest night that were judged."""
    usd: float | None
    """Dollars of the newest night; None: no price is set."""
    half_width: float | None
    """Half width of the newest night's interval."""
    ways: tuple[Way, ...]


@dataclass(frozen=True)
class CostPlan:
    """What the newest night cost, and what each way would cost."""

    dataset: str
    night: date
    nights: int
    """Nights that were looked at."""
    half_width: float
    """Half width that is asked for."""
    usd: float | None
    """Dollars of the newest night; None: no price is set."""
    metrics: tuple[MetricCosts, ...]
    """The metrics that pay for requests of their own."""
    free: tuple[str, ...]
    """The other metrics: they ask no paid judge, or share the verdicts of others."""

    @property
    def way_names(self) -> tuple[str, ...]:
        """The ways, in their order."""
        return tuple(WAYS)

    def total(self, way: str) -> float | None:
        """Dollars of a way for all metrics together; None if they are not known for all."""
        usd = [own.usd for one in self.metrics for own in one.ways if own.name == way]
        return None if not usd or None in usd else sum(filter(None, usd))

    @property
    def knows_cascade(self) -> bool:
        """True when the price of a cascade is known for a metric."""
        ways = (way for metric in self.metrics for way in metric.ways)
        return any(way.name == CASCADE and way.usd is not None for way in ways)

    @property
    def cheapest_sample(self) -> Way | None:
        """The cheapest sample by which every metric gets the interval; None if none is known."""
        reach = [
            Way(name, usd=usd, half_width=self.half_width)
            for name in WAYS
            if name not in (ALL_ROWS, DECISIONS, CASCADE)
            if (usd := self.total(name)) is not None and self._reaches(name)
        ]
        return min(reach, key=lambda way: way.usd or 0.0, default=None)

    def _reaches(self, way: str) -> bool:
        widths = [own.half_width for one in self.metrics for own in one.ways if own.name == way]
        return all(width is not None and width <= self.half_width for width in widths)


@dataclass(frozen=True)
class _Nights:
    """What the last comparable nights show of one metric."""

    rows: int
    spread: float
    summaries: Sequence[tuple[Manifest, Summary]]
    half_width: float
    learned: float | None = None
    """Correlation of the learned judge's row scores by `ragmetrics learn`; None: not known."""

    def sampled(self, *, learned: bool, draw: str) -> list[tuple[Summary, SampledMean]]:
        """The means of nights that were sampled this way."""
        return [
            (summary, summary.sample)
            for night, summary in self.summaries
            if night.sample and summary.sample
            if (night.sample.draw, night.sample.learned) == (draw, learned)
        ]

    def newest_active(self) -> list[tuple[Summary, SampledMean]]:
        """The means of active nights, with the cheap judge of the newest of them."""
        active = [one.sample for one, _ in self.summaries if one.sample]
        active = [one for one in active if one.draw == "active"]
        return self.sampled(learned=active[-1].learned, draw="active") if active else []


def plan_costs(
    nights: Sequence[Manifest],
    half_width: float = 0.02,
    settings: Settings | None = None,
    files: Files | None = None,
) -> CostPlan:
    """The plan from the last nights of a store, oldest first.

    The prices of the `settings` are used where a night has none. The learned judge that is in
    `files` counts by its correlations also where no night used it. Raises InputError without a
    night, and for a half width that is not between 0 and 1.
    """
    if not 0 < half_width < 1:
        raise InputError(f"half width {half_width:g}: should be above 0 and below 1")
    if not nights:
        raise InputError("no night is published yet: there is nothing to plan from")
    known_prices = [priced(night, settings) for night in nights] if settings else list(nights)
    learned = learned_correlations(settings, files) if settings and files else {}
    newest = known_prices[-1]
    paying = [one for one in newest.metrics if _has_asked(newest, one.metric)]
    return CostPlan(
        dataset=newest.dataset,
        night=newest.date,
        nights=len(known_prices),
        half_width=half_width,
        usd=newest.usage.usd if newest.usage.tokens else 0.0,
        metrics=tuple(
            _metric_costs(known_prices, summary, half_width, learned.get(summary.metric))
            for summary in paying
        ),
        free=tuple(one.metric for one in newest.metrics if one not in paying),
    )


def _has_asked(night: Manifest, metric: str) -> bool:
    """Whether a metric had requests of its own, if only to the store."""
    paid = paid_for(night, metric)
    return bool(paid.requests or paid.answered_from_store or paid.tokens)


def _metric_costs(
    nights: Sequence[Manifest], newest: Summary, half_width: float, learned: float | None
) -> MetricCosts:
    alike = comparable(nights, newest.metric, newest.fingerprint)
    summaries = [
        (night, summary)
        for night in nights
        if (summary := night.summary(newest.metric)) and any(summary is one for one in alike)
    ]
    rows = _scorable(newest)
    usd = paid_for(nights[-1], newest.metric)
    cascades = [
        (night, summary)
        for night in nights
        if (summary := night.summary(newest.metric)) and has_cascade(night)
    ]
    each = usd_per_row(summaries, alone=True)
    by_cascade = usd_per_row(cascades) if cascades else _NO_CASCADE
    by_way = {name: each for name in WAYS} | {
        CASCADE: by_cascade,
        DECISIONS: usd_by_decisions(nights, newest.metric),
    }
    return MetricCosts(
        metric=newest.metric,
        rows=rows,
        judged=judged(newest),
        usd=usd.usd if usd.tokens else 0.0,
        half_width=_half_width(newest),
        ways=tuple(
            _way(name, plan, rows, summaries, by_way[name], half_width, learned)
            for name, plan in WAYS.items()
        ),
    )


def _way(
    name: str,
    plan: Callable[[_Nights], int | str],
    rows: int,
    summaries: Sequence[tuple[Manifest, Summary]],
    each: float | str,
    half_width: float,
    learned: float | None,
) -> Way:
    if all(_half_width(summary) is None for _, summary in summaries):
        # Without an interval the standard deviation is not known; all rows are all rows.
        wanted: int | str = (
            rows if name in (ALL_ROWS, DECISIONS) else "a night with an interval of the mean"
        )
        reached = None
    else:
        spread = known([summary for _, summary in summaries]).spread
        wanted = plan(_Nights(rows, spread, summaries, half_width, learned))
        whole = _95 * spread / math.sqrt(rows) if rows else None
        reached = whole if wanted == rows else half_width
    if isinstance(wanted, str):
        return Way(name, needs=wanted)
    if isinstance(each, str):
        return Way(name, wanted, half_width=reached, needs=each)
    return Way(name, wanted, wanted * each, reached)


def _all_rows(nights: _Nights) -> int:
    return nights.rows


def _plain_sample(nights: _Nights) -> int:
    return _rows_for(nights, 0.0)


def _by_correlation(nights: _Nights, *, learned: bool, needs: str) -> int | str:
    """Rows to judge beside a cheap judge, from the mean correlation of the nights that had it, or
    from the known one.
    """
    sampled = nights.sampled(learned=learned, draw="uniform")
    seen = [sample.correlation for _, sample in sampled if sample.correlation is not None]
    known = nights.learned if learned else None
    correlation = sum(seen) / len(seen) if seen else known
    return needs if correlation is None else _rows_for(nights, correlation)


def _active_sampling(nights: _Nights) -> int | str:
    """Rows from the intervals of the nights that had it: the half width falls as 1 / sqrt(rows)."""
    products = [
        judged(summary) * half**2
        for summary, _ in nights.newest_active()
        if (half := _half_width(summary))
    ]
    if not products:
        return "a night with `sample: {draw: active}`"
    wanted = math.ceil(sum(products) / len(products) / nights.half_width**2)
    return min(max(wanted, FEWEST), nights.rows)


ALL_ROWS, DECISIONS, CASCADE = "all rows", "all rows by decisions", "cascade"
WAYS: Mapping[str, Callable[[_Nights], int | str]] = {
    ALL_ROWS: _all_rows,
    DECISIONS: _all_rows,
    "plain sample": _plain_sample,
    "prediction-powered": partial(
        _by_correlation, learned=False, needs="a night with `sample:`, drawn uniformly"
    ),
    "learned judge": partial(
        _by_correlation,
        learned=True,
        needs="a learned judge that is used (`ragmetrics learn`), or a night with `cheap: learned`",
    ),
    "active sampling": _active_sampling,
    CASCADE: _plain_sample,
}
"""The ways. Each gives the rows to judge, or what is needed to know them."""


def _rows_for(nights: _Nights, correlation: float) -> int:
    wanted = rows_to_judge(nights.half_width, nights.spread, correlation, nights.rows)
    return min(max(wanted, FEWEST), nights.rows)


def _scorable(summary: Summary) -> int:
    return sum(summary.status.values()) - summary.status.get(Status.NOT_APPLICABLE, 0)


def _half_width(summary: Summary) -> float | None:
    if summary.low is None or summary.high is None:
        return None
    return (summary.high - summary.low) / 2
