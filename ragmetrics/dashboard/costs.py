"""What a run cost, by metric and judge, and what its budget or sample left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ragmetrics.dashboard.formatting import one_line
from ragmetrics.records import (
    EMBEDDINGS,
    BudgetReport,
    Manifest,
    SampleReport,
    SpendLimits,
    Summary,
    Usage,
)
from ragmetrics.text import NO_VALUE, plural, share

if TYPE_CHECKING:
    from ragmetrics.scoring import CostPlan

_TOLERATED = 1.1
"""How many times the requested half width is accepted, as the spread differs between nights."""


@dataclass(frozen=True)
class Cost:
    """One line of costs: all requests of a metric to judges, or one part of them."""

    label: str
    usage: Usage
    is_part: bool = False
    """Whether it belongs to the metric above: one of several judges, or the embeddings."""
    known_usd: float | None = None
    """The money of the judges that have a price, if the line is a sum."""

    @property
    def money(self) -> str:
        """`$1.20`; `≥ $1.20` if one of several prices is missing, a dash if no price is known."""
        if self.usage.usd is None and self.known_usd is not None:
            return f"≥ {money(self.known_usd)}"
        return paid(self.usage)

    @property
    def cached(self) -> str:
        """The share of the prompt tokens that were in the endpoint's cache."""
        return cached_share(self.usage)


def cost_lines(by_metric: Mapping[str, Mapping[str, Usage]]) -> Sequence[Cost]:
    """A line per metric, then lines for its judges, if it has several, and its embeddings."""
    lines = []
    for metric, of in by_metric.items():
        asked = {name: one for name, one in of.items() if _is_shown(one)}
        judges = [name for name in asked if name != EMBEDDINGS]
        if asked:
            lines.append(_together(metric, [asked[name] for name in judges]))
        parts = judges if len(judges) > 1 else []
        parts += [EMBEDDINGS] if EMBEDDINGS in asked else []
        lines += [Cost(name, asked[name], is_part=True) for name in parts]
    return lines


def all_costs(lines: Sequence[Cost]) -> Cost:
    """The sum of metrics and embeddings."""
    parts = [line for line in lines if not line.is_part or line.label == EMBEDDINGS]
    total = _together("All", [part.usage for part in parts])
    known = [part.known_usd or part.usage.usd or 0.0 for part in parts]
    return replace(total, known_usd=sum(known) or None)


def _together(label: str, asked: Sequence[Usage]) -> Cost:
    known = [one.usd for one in asked if one.usd is not None]
    return Cost(label, sum(asked, Usage()), known_usd=sum(known) if known else None)


def _is_shown(one: Usage) -> bool:
    return bool(one.requests or one.answered_from_store or one.shared or one.prompt_tokens)


def costs(manifest: Manifest) -> Sequence[Cost]:
    """The lines of a night in the manifest's order; empty if nothing was paid for."""
    lines = cost_lines(manifest.usage_by_metric)
    return lines if any(line.usage.prompt_tokens for line in lines) else []


def money_text(total: Usage, by_metric: Mapping[str, Mapping[str, Usage]]) -> str:
    """The money in words: the sum, or the known part and the names without a price.

    Empty if no token was used.
    """
    if total.usd is not None:
        return money(total.usd)
    asked = [(name, one) for of in by_metric.values() for name, one in of.items() if one.tokens]
    missing = dict.fromkeys(name for name, one in asked if one.usd is None)
    known = [one.usd for _, one in asked if one.usd is not None]
    if not missing:
        return "cost not known: no price is set" if total.tokens else ""
    unknown = f"not all prices are set for {', '.join(one_line(name, 200) for name in missing)}"
    return f"{money(sum(known))} and more: {unknown}" if known else f"cost not known: {unknown}"


def cached_share(usage: Usage) -> str:
    """`78%`; empty if the endpoint reports no cached tokens."""
    return share(usage.cached_tokens, usage.prompt_tokens) if usage.cached_tokens else ""


def cached_text(usage: Usage) -> str:
    """`12.5% cached, saved $0.03`; without the money if it is not known, empty if nothing was
    cached.
    """
    if not usage.cached_tokens:
        return ""
    saved = "" if usage.usd_saved is None else f", saved {money(usage.usd_saved)}"
    return f"{cached_share(usage)} cached{saved}"


def unknown_text(usage: Usage) -> str:
    """`estimated for 900 requests without a known count, such as lost answers: 160,000 tokens,
    $16.40`; empty if the tokens of all requests are known.
    """
    if not usage.unknown_requests:
        return ""
    tokens = usage.unknown_prompt_tokens + usage.unknown_completion_tokens
    dollars = "" if usage.unknown_usd is None else f", {money(usage.unknown_usd)}"
    return (
        f"estimated for {plural(usage.unknown_requests, 'request')} without a known count, such as "
        f"lost answers: {plural(tokens, 'token')}{dollars}"
    )


def certain_text(usage: Usage) -> str:
    """`certain of 770 of 1,000 verdicts (77.0%)`, by an earlier judge of a cascade; else empty."""
    asked = usage.certain + usage.escalated
    if not asked:
        return ""
    return f"certain of {usage.certain:,} of {asked:,} verdicts ({share(usage.certain, asked)})"


def money(usd: float | None) -> str:
    """`$12.34`, with up to four decimals below a dollar; a dash if no price is known."""
    if usd is None:
        return NO_VALUE
    if 0 < usd < 0.00005:
        return "<$0.0001"
    dollars, _, cents = (f"{usd:,.2f}" if usd >= 1 else f"{usd:.4f}").partition(".")
    return f"${dollars}.{cents.rstrip('0').ljust(2, '0')}"


def night_money(plan: CostPlan) -> tuple[str, str]:
    """What the newest night cost, and what a cheaper sample would cost: `("$0.42", "$0.11")`.

    The second is empty if no sample is known to be cheaper, both if no price is set.
    """
    if not plan.usd:
        return "", ""
    sample = plan.cheapest_sample
    cheaper = sample and sample.usd is not None and sample.usd < plan.usd
    return money(plan.usd), money(sample.usd) if sample and cheaper else ""


def paid(usage: Usage) -> str:
    """What was paid: a dash if no price is set, `$0.00` if no token was used."""
    return money(usage.usd if usage.tokens else 0.0)


def limits_text(one: SpendLimits) -> str:
    """A budget in words: `1,000 requests, $2.50`."""
    limits = [
        plural(one.max_requests, "request") if one.max_requests is not None else "",
        plural(one.max_tokens, "token") if one.max_tokens is not None else "",
        money(one.max_usd) if one.max_usd is not None else "",
    ]
    return ", ".join(filter(None, limits))


def usage_text(usage: Usage) -> str:
    """What was spent in words: `950 requests, 160,000 tokens, $0.09`."""
    words = f"{plural(usage.requests, 'request')}, {plural(usage.tokens, 'token')}"
    return words if usage.usd is None else f"{words}, {money(usage.usd)}"


def budget_text(report: BudgetReport) -> str:
    """What share of the questions the budget was enough for, and the rows over, in words."""
    if report.share == 1:
        words = "enough for all questions"
    else:
        words = f"enough for {share(report.share, 1)} of the questions"
    if not report.rows_over:
        return words
    outside, cut = report.rows_over - report.rows_cut_off, report.rows_cut_off
    if not cut:
        return f"{words}; {plural(outside, 'row')} over"
    words = f"by the estimate {words}; "
    if outside:
        words += f"{plural(outside, 'row')} over, outside the sample; "
    return f"{words}{plural(cut, 'row')} over, as it was used up during the run"


def was_over(report: BudgetReport) -> bool:
    """Whether the budget left any row without a judge."""
    return report.share < 1 or report.rows_over > 0


def judged_rows(report: BudgetReport, rows: int, sample: SampleReport | None = None) -> str:
    """How many rows the budget allowed; with a sample, how many of its rows it left out."""
    if sample:
        return f"The budget excluded {plural(report.rows_over, 'row')} of the sample."
    return f"The budget covered {rows - report.rows_over:,} of {plural(rows, 'row')}."


def sample_text(report: SampleReport, rows: int) -> str:
    """`500 of 20,000 rows judged, the others by the lexical judge alone`.

    With `cheap: learned` it also says which learned judge was used, or why none.
    """
    words = f"{report.judged:,} of {plural(rows, 'row')} judged"
    if report.judged < rows:
        words += f", the others by the {'learned' if report.learned else 'lexical'} judge alone"
    return f"{words} ({report.cheap})" if report.cheap else words


def sample_cost_text(report: SampleReport) -> str:
    """What a sample cost, and approximately what all rows would have cost, in words."""
    if not report.spent.requests and not (report.whole and report.whole.requests):
        return "no cost: no request left this machine"
    words = f"spent: {usage_text(report.spent)}"
    if report.whole is None:
        return f"{words}; the cost of judging all rows is not known"
    return f"{words}; all rows would have cost about {usage_text(report.whole)}"


def narrowed_text(summaries: Sequence[Summary]) -> str:
    """How much the cheap judge narrows the interval of each sampled metric, in words."""
    words = (
        f"{summary.metric} {share(gain, 1) if gain >= 0.001 else 'not at all'}"
        for summary in summaries
        if (gain := _gain(summary)) is not None
    )
    return ", ".join(words)


def active_text(report: SampleReport, summaries: Sequence[Summary]) -> str:
    """What active sampling did for each metric, in words; empty without it."""
    if report.draw != "active":
        return ""
    notes = []
    for summary in summaries:
        if why := report.uniform.get(summary.metric):
            notes.append(f"{summary.metric} with equal chances, because {why}")
        elif summary.sample and summary.sample.effective:
            notes.append(
                f"{summary.metric}: {summary.scored:,} judged rows count as "
                f"{round(summary.sample.effective):,} of a plain sample"
            )
    return "; ".join(notes)


def too_wide(report: SampleReport, summaries: Sequence[Summary]) -> str:
    """The metrics whose interval is more than a tenth wider than requested, if there are any.

    Their scores spread more than before, or there are too few rows.
    """
    asked = report.half_width
    if asked is None:
        return ""
    half = {one.metric: _half_width(one.low, one.high) for one in summaries if one.sample}
    wide = [f"{name} ±{found:.3f}" for name, found in half.items() if found > _TOLERATED * asked]
    return f"wider than ±{asked:g}: {', '.join(wide)}" if wide else ""


def sample_lines(manifest: Manifest) -> tuple[list[str], str]:
    """The sample of a run in lines: judged rows, cost, and what it did to the intervals; and a
    warning, if they are wider than requested. Both are empty without a sample.
    """
    report, metrics = manifest.sample, manifest.metrics
    if report is None:
        return [], ""
    lines = [f"Sample: {sample_text(report, manifest.source.rows)}; {sample_cost_text(report)}"]
    if by := narrowed_text(metrics):
        lines.append(f"  intervals are narrower than those of the judged rows alone: {by}")
    if drawn := active_text(report, metrics):
        lines.append(f"  active sampling: {drawn}")
    wide = too_wide(report, metrics)
    return lines, f"  intervals {wide}" if wide else ""


def budget_lines(report: BudgetReport) -> tuple[str, str, bool]:
    """The budget and its use, the share of questions that was judged, and whether rows are over."""
    spent = f"Budget: {limits_text(report.limits)}; spent: {usage_text(report.spent)}"
    return spent, f"  {budget_text(report)}", was_over(report)


def _gain(one: Summary) -> float | None:
    """Share by which the interval is narrower than that of the judged rows alone."""
    if one.sample is None:
        return None
    whole, alone = _half_width(one.low, one.high), _half_width(one.sample.low, one.sample.high)
    return 1 - whole / alone if alone and one.low is not None else None


def _half_width(low: float | None, high: float | None) -> float:
    return 0.0 if low is None or high is None else max(0.0, high - low) / 2
