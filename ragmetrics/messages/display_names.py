"""Names of metrics in front of people, also in texts of stored records, which have the code's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ragmetrics.metrics import display_name
from ragmetrics.records import Manifest
from ragmetrics.text import clean


def in_display_names(text: str, night: Manifest) -> str:
    """A text about a night with the display name of each of its metrics."""
    return with_display_names(text, {*(one.metric for one in night.metrics), *_ruled(night)})


def with_display_names(text: str, metrics: Iterable[str]) -> str:
    """A text with the display name of each of these metrics."""
    names = tuple(sorted(metrics, key=len)[::-1])
    if not names:
        return text
    return _pattern(names).sub(lambda found: clean(display_name(found[0]), 80), text)


def _ruled(night: Manifest) -> set[str]:
    return {finding.metric for finding in night.findings if finding.metric}


@lru_cache(8)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """The names as whole words; one in a path, a tag or a command stays."""
    return re.compile(rf"(?<![\w./=-])(?:{'|'.join(map(re.escape, names))})(?![\w/=-])")


__all__ = ["in_display_names", "with_display_names"]
