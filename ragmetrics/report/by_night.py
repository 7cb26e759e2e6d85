"""Data and costs night by night: what was read, what of it has no score and why, what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics.records import Manifest, Usage
from ragmetrics.report.condition import Condition
from ragmetrics.report.costs import money
from ragmetrics.report.coverage import STATUS
from ragmetrics.report.frame import SERIES, Figure, days_axis, frame

NIGHTS = 60


@dataclass(frozen=True)
class Lost:
    """Rows without a score for one reason, in the metric that has the most of them."""

    status: str
    rows: int
    metric: str


@dataclass(frozen=True)
class NightLine:
    """One night's data and costs."""

    manifest: Manifest
    condition: Condition
    lost: dict[str, Lost]

    @property
    def reason(self) -> str:
        """The commonest reason of quarantine."""
        reasons = self.manifest.source.reasons
        return max(reasons, key=lambda reason: (reasons[reason], reason), default="")

    @property
    def money(self) -> str:
        """What the night cost; a dash where no price is set, nothing where nothing was asked."""
        usage = self.manifest.usage
        return money(usage.usd if _tokens(usage) else 0.0)


@dataclass(frozen=True)
class ByNight:
    """The newest nights, oldest first."""

    lines: tuple[NightLine, ...]

    @property
    def statuses(self) -> list[str]:
        """Why rows have no score in any of these nights."""
        return [name for name in STATUS if any(name in line.lost for line in self.lines)]

    @property
    def asked(self) -> bool:
        """Whether anything was asked over a network."""
        return any(
            one.manifest.usage.requests or one.manifest.usage.answered_from_store
            for one in self.lines
        )

    @property
    def priced(self) -> bool:
        """Whether the price of anything is known."""
        return any(one.manifest.usage.usd for one in self.lines)

    @property
    def unpriced(self) -> bool:
        """Whether something was asked whose price is not set."""
        usages = [one.manifest.usage for one in self.lines]
        return any(usage.usd is None and _tokens(usage) for usage in usages)

    @property
    def read(self) -> bool:
        """Whether there was any row, of whatever kind."""
        sources = [one.manifest.source for one in self.lines]
        return any(source.rows or source.quarantined for source in sources)


def by_night(nights: Sequence[tuple[Manifest, Condition]]) -> ByNight:
    """The newest nights of those given, which are oldest first."""
    return ByNight(tuple(_line(*one) for one in nights[-NIGHTS:]))


def _line(manifest: Manifest, condition: Condition) -> NightLine:
    lost: dict[str, Lost] = {}
    for summary in manifest.metrics:
        for status, rows in summary.status.items():
            most = lost[status].rows if status in lost else 0
            if status != "scored" and rows > most:
                lost[status] = Lost(status, rows, summary.metric)
    return NightLine(manifest, condition, lost)


def rows_figure(nights: ByNight) -> Figure:
    """Rows read, with those in quarantine on top of them."""
    sources = [one.manifest.source for one in nights.lines]
    bars = [_bars(nights, [source.rows for source in sources], SERIES, "rows")]
    if any(source.quarantined for source in sources):
        quarantined = [source.quarantined for source in sources]
        bars.append(_bars(nights, quarantined, "var(--firing)", "quarantined"))
    return _figure(nights, bars, "~s")


def requests_figure(nights: ByNight) -> Figure:
    """Requests asked, with those answered from the store on top of them."""
    usages = [one.manifest.usage for one in nights.lines]
    bars = [_bars(nights, [usage.requests for usage in usages], SERIES, "asked")]
    if any(usage.answered_from_store for usage in usages):
        kept = [usage.answered_from_store for usage in usages]
        bars.append(_bars(nights, kept, "var(--series-tint)", "from the store"))
    return _figure(nights, bars, "~s")


def money_figure(nights: ByNight) -> Figure:
    """Dollars per night, where they are known."""
    dollars = [one.manifest.usage.usd or 0.0 for one in nights.lines]
    told = [one.money for one in nights.lines]
    bars = _bars(nights, dollars, "var(--series-2)", "")
    hover = {"customdata": told, "hovertemplate": "%{x|%Y-%m-%d}<br>%{customdata}<extra></extra>"}
    return _figure(nights, [bars | hover], "$~g")


def _bars(nights: ByNight, values: Sequence[float], colour: str, noun: str) -> Figure:
    return {
        "type": "bar",
        "x": [str(one.manifest.date) for one in nights.lines],
        "y": list(values),
        "width": 0.76 * 86_400_000,
        "marker": {"color": colour},
        "hovertemplate": f"%{{x|%Y-%m-%d}}<br>%{{y:,}} {noun}<extra></extra>",
    }


def _figure(nights: ByNight, bars: list[Figure], ticks: str) -> Figure:
    layout = frame(margin={"l": 40, "r": 8, "t": 8, "b": 24})
    layout["barmode"] = "stack"
    layout["xaxis"] |= days_axis([one.manifest.date for one in nights.lines])
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 4, "tickformat": ticks}
    return {"data": bars, "layout": layout}


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens


__all__ = [
    "NIGHTS",
    "ByNight",
    "Lost",
    "NightLine",
    "by_night",
    "money_figure",
    "requests_figure",
    "rows_figure",
]
