"""The page of all index builds: every gate with its verdict and what it rests on.

builds.html
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from ragmetrics.gates.records import Gate, MetricVerdict, Verdict
from ragmetrics.gates.undecided import Undecided
from ragmetrics.report.pages import render
from ragmetrics.report.words import duration
from ragmetrics.store.files import Files

PAGE = "builds.html"
MOST_IN_FULL = 30
"""Gates that are shown with tables and questions; of the others a line stands."""
_MOST_LINES = 100
_MOST_UNDECIDED = 20

STATES: dict[Verdict, tuple[str, str]] = {
    "promote": ("ok", "promote"),
    "hold": ("firing", "hold"),
    "inconclusive": ("pending", "inconclusive"),
}
"""Of each verdict, an icon's name and the word for it."""


def write_builds(
    site: Files,
    gates: Iterable[Gate],
    undecided: Iterable[Undecided] = (),
    dataset: str | None = None,
) -> str | None:
    """Write the page; return its path, or None where no build has been gated.

    `gates` and `undecided` are given newest first, and taken as far as they are shown; `dataset`
    names the site's first page.
    """
    newest = iter(gates)
    shown, lost = list(islice(newest, _MOST_LINES)), list(islice(undecided, _MOST_UNDECIDED))
    if not shown and not lost:
        return None
    page = render(
        "builds.html",
        0,
        dataset=dataset,
        gates=shown,
        more=next(newest, None) is not None,
        in_full=MOST_IN_FULL,
        undecided=lost,
        held=sum(gate.verdict == "hold" for gate in shown),
        states=STATES,
        anchor=anchor,
        lowest=_lowest,
        took=lambda gate: duration(gate.finished_at - gate.started_at),
    )
    site.write(PAGE, page)
    return PAGE


def anchor(build: str) -> str:
    """Where a build stands on the page."""
    return f"build-{build}"


def _lowest(gate: Gate) -> MetricVerdict | None:
    """The metric that speaks for the verdict: of those with it, the one that fell furthest."""
    compared = [one for one in gate.metrics if one.drop is not None]
    own = [one for one in compared if one.verdict == gate.verdict] or compared
    return max(own, key=lambda one: (one.drop or 0.0) - one.max_drop, default=None)
