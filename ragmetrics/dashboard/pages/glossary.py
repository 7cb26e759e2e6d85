"""Every term and metric of these pages with its definition."""

from __future__ import annotations

from ragmetrics.dashboard.glossary import groups
from ragmetrics.dashboard.page import Page, Shown
from ragmetrics.metrics import used_metrics


def render(shown: Shown) -> bytes:
    """The terms by heading, and the metrics that this process uses."""
    return shown.render("glossary.html", groups=groups(), metrics=used_metrics())


glossary = Page("glossary", "Glossary", __doc__, render, "folder", 90)
