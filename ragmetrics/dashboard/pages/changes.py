"""What changed since the night before, question by question."""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.dashboard.compare_view import Means, compare_view
from ragmetrics.dashboard.page import Page, Shown
from ragmetrics.records import Manifest


def render(shown: Shown) -> bytes:
    """What changed since the night before; if no night compares, why."""
    night, before, comparison = shown.night, shown.before, shown.comparison
    view = None
    if comparison:
        lost = comparison.lost_passages or night.lost_passages
        whole = comparison.model_copy(update={"lost_passages": lost})
        view = compare_view(whole, _means_of_rows(before, night))
    return shown.render(
        "comparison.html",
        place="Nights",
        title=f"Changes {night.date} {night.dataset}",
        crumbs=[
            ("Nights", "../index.html#nights"),
            (f"{night.date}", "index.html"),
            ("changes", ""),
        ],
        subject=f"Night of {night.date}",
        view=view,
        reason="" if comparison else _why_not_compared(night, shown.earlier),
    )


def _link(shown: Shown) -> str:
    return f"Compare with {shown.before.date}" if shown.before else ""


def _means_of_rows(before: Manifest | None, now: Manifest) -> dict[str, Means]:
    """The means of all rows in both nights, by metric."""
    if before is None:
        return {}
    then = {metric.metric: metric.mean for metric in before.metrics}
    return {metric.metric: (then.get(metric.metric), metric.mean) for metric in now.metrics}


def _why_not_compared(manifest: Manifest, earlier: Sequence[Manifest]) -> str:
    if not any(metric.scored for metric in manifest.metrics):
        return "Nothing was scored in this night."
    known = [one for one in earlier if any(summary.scored for summary in one.metrics)]
    if not known:
        return (
            "It is the first night with scores. From the next one on, this page says what changed."
        )
    last = known[-1]
    if last.judge.fingerprint != manifest.judge.fingerprint:
        return (
            f"The judge changed since {last.date}, and numbers of different judges are never "
            "compared. From the next night on, this page says what changed."
        )
    return (
        f"No metric was scored as in an earlier night: since {last.date} prompts, parameters or "
        "metrics changed. From the next night on, this page says what changed."
    )


changes = Page("changes", "What changed", __doc__, render, place=20, link=_link, compares=True)
