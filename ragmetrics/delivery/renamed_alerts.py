"""Alerts whose key has changed, so that an open alert is neither lost nor told twice.

In earlier versions a drop rule without `versus` compared with the previous night, and its key ended
in `versus previous`. Such an alert goes on under its key of today: in the findings of earlier
nights, in the alert states, in silences and in threads. A rule that says `versus: previous` keeps
its alert.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from ragmetrics.config import Rule, drop_name
from ragmetrics.delivery.slack_threads import load_threads, save_thread
from ragmetrics.errors import StoreError
from ragmetrics.records import Finding, Manifest
from ragmetrics.rules import silence, silences, unsilence
from ragmetrics.storage import Files

log = logging.getLogger(__name__)
_Kept = TypeVar("_Kept")


def with_keys_of_today(
    rules: Sequence[Rule] | None, nights: Sequence[Manifest]
) -> Sequence[Manifest]:
    """Earlier nights with the keys that tonight's rules give to the same alerts."""
    said = {(rule.metric, rule.by, name) for rule in rules or () for name in rule.limits}
    names = {
        (rule.metric, rule.by, former): drop_name(rule.max_drop, rule.versus)
        for rule in rules or ()
        if (former := rule.former_limit) and rule.max_drop is not None
        if (rule.metric, rule.by, former) not in said
    }
    return [_renamed(night, names) for night in nights] if names else nights


def _renamed(night: Manifest, names: Mapping[tuple[str, str | None, str], str]) -> Manifest:
    findings = [_with_key_of_today(finding, names) for finding in night.findings]
    return night if findings == night.findings else night.model_copy(update={"findings": findings})


def _with_key_of_today(
    finding: Finding, names: Mapping[tuple[str, str | None, str], str]
) -> Finding:
    rest, _, limit = finding.key.rpartition("/")
    by = finding.segment.tag if finding.segment else None
    name = names.get((finding.metric or "", by, limit)) if finding.is_rule else None
    if name is None:
        return finding
    return finding.model_copy(update={"key": f"{rest}/{name}", "renamed_from": finding.key})


def moved_keys(known: Iterable[str], findings: Iterable[Finding]) -> dict[str, str]:
    """For each known key of an earlier version, the alert's key of today."""
    known, findings = set(known), list(findings)
    current = {finding.key for finding in findings}
    return {
        finding.renamed_from: finding.key
        for finding in findings
        if finding.renamed_from in known and finding.renamed_from not in current
    }


def under_keys_of_today(
    known: Mapping[str, _Kept], findings: Iterable[Finding]
) -> dict[str, _Kept]:
    """What is known by alert, under the keys of today. What is there under such a key stays."""
    moved = moved_keys(known, findings)
    found = {key: one for key, one in known.items() if key not in moved}
    return {moved[key]: known[key] for key in moved} | found


def move_silences_and_threads(files: Files, findings: Sequence[Finding]) -> None:
    """Store silences and threads under the keys of today; where the store refuses, that is logged.

    The next night tries again.
    """
    try:
        kept = silences(files)
        for former, key in moved_keys(kept, findings).items():
            if key not in kept:
                silence(files, kept[former].model_copy(update={"key": key}))
            unsilence(files, former)
        threads = load_threads(files).by_alert
        for former, key in moved_keys(threads, findings).items():
            if key not in threads:
                save_thread(files, [key], threads[former])
    except StoreError as error:
        log.error("silences of renamed alerts could not be moved: %s", error)


__all__ = [
    "move_silences_and_threads",
    "moved_keys",
    "under_keys_of_today",
    "with_keys_of_today",
]
