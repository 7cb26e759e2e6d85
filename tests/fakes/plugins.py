"""Packages of metrics that a test installs."""

from __future__ import annotations

from ragmetrics.metrics import registry


def forget_plugins() -> None:
    """Look for installed packages again."""
    registry._plugins.cache_clear()
    registry._loaded.clear()
