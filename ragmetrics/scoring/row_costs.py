"""What a judged row cost, by the usage of the last nights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragmetrics.config import JUDGES, EmbeddingSettings, JudgeSettings, Settings
from ragmetrics.judges import make_member, names_of
from ragmetrics.records import EMBEDDINGS, UNSETTLED, Manifest, Status, Summary, Usage
from ragmetrics.scoring.metric_choice import add_price

JUDGED = (Status.SCORED, *UNSETTLED)
_PRICE = "prices of the judge and of the embeddings (usd_per_million_prompt_tokens and the like)"


def paid_for(night: Manifest, metric: str) -> Usage:
    """What a metric paid in a night."""
    return sum(_by_judge(night, metric).values(), Usage())


def _by_judge(night: Manifest, metric: str) -> Mapping[str, Usage]:
    """The usage of each judge, and of the embeddings, for a metric."""
    return night.usage_by_metric.get(metric, {})


def priced(night: Manifest, settings: Settings) -> Manifest:
    """The night with the prices of the settings, where its usage has no price."""
    remote = [one for one in settings.panel if one.remote]
    names = names_of([make_member(one) for one in remote])
    prices: dict[str, JudgeSettings | EmbeddingSettings] = dict(zip(names, remote, strict=True))
    prices[EMBEDDINGS] = settings.embedder

    def priced(name: str, usage: Usage) -> Usage:
        chosen = prices.get(name)
        return usage if usage.usd is not None or chosen is None else add_price(chosen, usage)

    by_metric = {
        label: {name: priced(name, one) for name, one in of.items()}
        for label, of in night.usage_by_metric.items()
    }
    parts = [one for of in by_metric.values() for one in of.values()]
    update: dict[str, object] = {"usage_by_metric": by_metric}
    if night.usage.usd is None and parts:
        usd = sum(parts, Usage()).usd
        update["usage"] = night.usage.model_copy(update={"usd": usd})
    return night.model_copy(update=update)


def usd_per_row(nights: Sequence[tuple[Manifest, Summary]], *, alone: bool = False) -> float | str:
    """Dollars per judged row over the nights that asked a judge, or what is needed to know them.

    `alone`: what they would be if the last judge of a cascade gave every verdict.
    """
    usd, rows = 0.0, 0
    for night, summary in nights:
        cascades = alone and has_cascade(night)
        paid = (_if_last_alone if cascades else paid_for)(night, summary.metric)
        if not paid.requests:
            continue  # all its verdicts were in the store
        if paid.usd is None:
            return _PRICE
        usd, rows = usd + paid.usd, rows + judged(summary)
    return usd / rows if rows else "a night whose verdicts are not all in the store already"


def usd_by_decisions(nights: Sequence[Manifest], metric: str) -> float | str:
    """Dollars per row over the nights that decision models alone judged, or what is needed to know
    them. One metric carries the request of a row, which the others share.
    """
    usd, rows = 0.0, 0
    for night in nights:
        summary = night.summary(metric)
        asked = any(paid_for(night, one.metric).requests for one in night.metrics)
        if summary is None or not asked or not _is_decided(night):
            continue  # such as a night whose canaries alone were asked
        paid = paid_for(night, metric)
        if paid.tokens and paid.usd is None:
            return _PRICE
        usd, rows = usd + (paid.usd or 0.0), rows + judged(summary)
    return usd / rows if rows else "a night with `judge: decision`"


def _is_decided(night: Manifest) -> bool:
    names = night.judge.panel or [night.judge.name]
    kinds = [JUDGES.bundled.get(name.partition(":")[0]) for name in names]
    return all(kind is not None and kind.decides for kind in kinds)


def _if_last_alone(night: Manifest, metric: str) -> Usage:
    """What a night with a cascade would have paid for a metric if its last judge had given every
    verdict; what it paid for a metric that only this judge can score.
    """
    by_judge = _by_judge(night, metric)
    paid = by_judge.get(night.judge.panel[-1], Usage()) + by_judge.get(EMBEDDINGS, Usage())
    verdicts = max((one.certain + one.escalated for one in by_judge.values()), default=0)
    left = verdicts - sum(one.certain for one in by_judge.values())
    if not (verdicts and left) or paid.usd is None:
        return paid
    return paid.model_copy(update={"usd": paid.usd * verdicts / left})


def has_cascade(night: Manifest) -> bool:
    """Whether a cascade judged a night, and an earlier judge of it was asked."""
    usages = (one for of in night.usage_by_metric.values() for one in of.values())
    return any(usage.certain or usage.escalated for usage in usages)


def judged(summary: Summary) -> int:
    """Rows that a judge scored or tried to score."""
    return sum(summary.status.get(status, 0) for status in JUDGED)
