"""Writes docs/reference/presets.md from the docstrings of the presets.

python -m scripts.presets_page
"""

from __future__ import annotations

from pathlib import Path

from ragmetrics.config import PRESETS
from ragmetrics.logs import Preset

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "presets.md"

_HEAD = """\
# Presets

Every preset is one file in `ragmetrics/logs/presets/`; this page is made of their docstrings by
`python -m scripts.presets_page`. What all presets have in common: [presets](../how-to/presets.md).
One record of each sample cannot be read, to show what becomes of it.

| preset | reads |
|---|---|
"""


def page() -> str:
    """The whole page."""
    lines = [f"| [`{preset.name}`](#{preset.name}) | {preset.title} |\n" for preset in _presets()]
    sections = [f"\n## `{preset.name}`\n\n{preset.docs.strip()}\n" for preset in _presets()]
    return "".join([_HEAD, *lines, *sections])


def _presets() -> list[Preset]:
    return list(PRESETS.bundled.values())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
