"""Alerts whose keys were other ones in earlier versions: they go on under their keys of today."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from ragmetrics.records import Finding

_Kept = TypeVar("_Kept")


def moved_keys(known: Iterable[str], findings: Iterable[Finding]) -> dict[str, str]:
    """For each known key of an earlier version, the alert's key of today."""
    renamed = [finding for finding in findings if finding.renamed_from in known]
    current = {finding.key for finding in findings} if renamed else set()
    return {
        finding.renamed_from: finding.key
        for finding in renamed
        if finding.renamed_from not in current
    }


def under_keys_of_today(
    known: Mapping[str, _Kept], findings: Sequence[Finding]
) -> Mapping[str, _Kept]:
    """What is known by alert, under the keys of today. What is there under such a key stays."""
    moved = moved_keys(known, findings)
    if not moved:
        return known
    kept = {key: value for key, value in known.items() if key not in moved}
    return {moved[key]: known[key] for key in moved} | kept
