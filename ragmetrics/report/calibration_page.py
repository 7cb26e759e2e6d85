"""The page of all calibrations: every judge on every labelled set, the first of them in full.

calibration.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragmetrics.calibration import History
from ragmetrics.model import ATTACK_WORDS, FIGURES, FigureName
from ragmetrics.report.calibration import Standing, segment_tables, standings, unanswered
from ragmetrics.report.calibration_figure import MAIN, drift_figure, reliability_figure
from ragmetrics.report.templating import render_page
from ragmetrics.storage import Files

CALIBRATION_PAGE = "calibration.html"
MOST_IN_FULL = 12
"""Judges on sets that are shown with charts and tables; of the others the main figures stand."""
_MOST_LINES = 200
TERMS_OF: dict[FigureName, str] = {
    "auc": "AUC",
    "auc_within": "AUC",
    "kappa": "kappa",
    "kappa_classes": "kappa",
    "kappa_quadratic": "kappa",
    "alpha": "agreement α",
    "spearman": "Spearman",
    "accuracy": "accuracy",
}
"""What the glossary calls each figure."""


@dataclass(frozen=True)
class _Group:
    """The judges of one labelled set."""

    name: str
    standings: tuple[Standing, ...]


def write_calibrations(site: Files, history: History, dataset: str | None = None) -> str | None:
    """Write the page; return its path, or None where nothing has been calibrated.

    `dataset` names the site's first page.
    """
    found = standings(history)
    if not found:
        return None
    shown = found[:_MOST_LINES]
    page = render_page(
        "calibration.html",
        0,
        dataset=dataset,
        standings=shown,
        more=len(found) - len(shown),
        groups=_groups(found[:MOST_IN_FULL]),
        in_full=MOST_IN_FULL,
        drifted=sum(one.drifted for one in found),
        names=FIGURES,
        attack_words=ATTACK_WORDS,
        terms_of=TERMS_OF,
        main=MAIN,
        reliability=reliability_figure,
        trend=drift_figure,
        segments=segment_tables,
        unanswered=unanswered,
    )
    site.write(CALIBRATION_PAGE, page)
    return CALIBRATION_PAGE


def _groups(found: Sequence[Standing]) -> list[_Group]:
    names = dict.fromkeys(one.newest.name for one in found)
    return [_Group(name, tuple(s for s in found if s.newest.name == name)) for name in names]
