"""Packages with plugins that a test installs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ragmetrics.config import JUDGES, PRESETS, TARGETS
from ragmetrics.config.alerts import CHANNELS
from ragmetrics.dashboard import PAGES
from ragmetrics.metrics import METRICS
from ragmetrics.rules import CHECKS


def forget_plugins() -> None:
    """Look for installed packages again."""
    for kind in (METRICS, PRESETS, TARGETS, CHECKS, JUDGES, CHANNELS, PAGES):
        kind.forget()


@contextmanager
def plugin_site(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A folder of the path that packages are installed into: the group of their entry points, the
    name of the package, the source of its module, and the names of its plugins.
    """

    def install(group: str, package: str, source: str, *names: str) -> None:
        (folder / f"{package}_plugin.py").write_text(source)
        info = folder / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = "".join(f"{name} = {package}_plugin:{name}\n" for name in names)
        (info / "entry_points.txt").write_text(f"[{group}]\n{lines}")
        forget_plugins()

    monkeypatch.syspath_prepend(str(folder))
    yield install
    forget_plugins()
    for name in [one for one in sys.modules if one.endswith("_plugin")]:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]
