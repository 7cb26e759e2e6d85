"""Names and values of metrics in front of people.

Names in texts of stored records are those of the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ragmetrics.metrics import display_name, unit_of
from ragmetrics.records import Finding, Manifest
from ragmetrics.text import clean, number, with_unit


def in_display_names(text: str, about: Manifest | Finding) -> str:
    """A text about a night, or of a finding, with the display name of each of its metrics."""
    return with_display_names(text, _names(about))


def with_display_names(text: str, metrics: Iterable[str]) -> str:
    """A text with the display name of each of these metrics."""
    # Only those of the text: names that a log made long take seconds to compile.
    names = tuple(sorted((name for name in metrics if name in text), key=len, reverse=True))
    if not names:
        return text
    return _pattern(names).sub(lambda match: clean(display_name(match[0]), 80), text)


def in_unit(value: float | None, metric: str | None) -> str:
    """A value in the unit of its metric; without one it has three digits."""
    unit = unit_of(metric or "")
    return with_unit(value, unit) if unit else number(value)


def _names(about: Manifest | Finding) -> set[str]:
    if isinstance(about, Finding):
        return {about.metric} if about.metric else set()
    ruled = {finding.metric for finding in about.findings if finding.metric}
    return ruled | {summary.metric for summary in about.metrics}


@lru_cache(64)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """The names as whole words; one in a path, a tag or a command stays."""
    return re.compile(rf"(?<![\w./=-])(?:{'|'.join(map(re.escape, names))})(?![\w/=-])")


__all__ = ["in_display_names", "in_unit", "with_display_names"]
