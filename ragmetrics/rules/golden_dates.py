"""Nights are compared over golden questions that both of them use: a question that was added or
retired between them would move the mean of every metric with a reference.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from ragmetrics.records import Manifest
from ragmetrics.rules.context import NightContext

T = TypeVar("T")


def one_sided_questions(
    night: NightContext, before: Sequence[Manifest], now: Sequence[Manifest]
) -> set[str]:
    """Keys of the golden questions that were added after all nights `before`, or retired until the
    first of the nights `now`.
    """
    source = night.manifest.source
    if not before or not (source.golden_since or source.golden_until):
        return set()
    newest, oldest = max(one.date for one in before), min(one.date for one in now)
    added = {key for key, day in source.golden_since.items() if newest < day}
    return added | {key for key, day in source.golden_until.items() if day <= oldest}


def without_questions(values: Mapping[str, T], questions: Collection[str]) -> Mapping[str, T]:
    """The values of the other questions."""
    if not questions:
        return values
    return {key: own for key, own in values.items() if key not in questions}
