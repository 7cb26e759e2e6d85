"""Packages of metrics that a test installs."""

from __future__ import annotations

from ragmetrics.metrics import METRICS


def forget_plugins() -> None:
    """Look for installed packages again."""
    METRICS.forget()
