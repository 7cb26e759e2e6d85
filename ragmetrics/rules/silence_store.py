"""The silences of alerts: one file each, `alerts/silences/2026-11-20T071502.104233Z.ID.json`.

Commands write silences and remove those that are expired. Nights read them, and move that of an
alert whose key has changed. The newest silence of an alert counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date
from functools import partial

from ragmetrics.records import AlertState, Finding, Manifest, Severity, Silence, alert_id
from ragmetrics.storage import Files, find_record, save_record, unless_refused

FOLDER = "alerts/silences"


def silences(files: Files) -> dict[str, Silence]:
    """The newest silence of each alert, expired or not, by the alert's key.

    Other files are logged and ignored. Raises StoreError where the store cannot be read.
    """
    return _newest(one for _, one in _found(files))


def known_silences(files: Files) -> dict[str, Silence]:
    """Like `silences`, for a night: it has none where the store refuses to list them."""
    return unless_refused(partial(silences, files), {}, "no alert counts as silenced")


def silence(files: Files, one: Silence) -> None:
    """Store a silence; it replaces the alert's earlier one."""
    moment = f"{one.at.astimezone(UTC):%Y-%m-%dT%H%M%S.%fZ}"
    save_record(files, f"{FOLDER}/{moment}.{alert_id(one.key)}.json", one)


def unsilence(files: Files, key: str) -> bool:
    """Remove all silences of an alert; return whether there was any."""
    paths = [path for path, one in _found(files) if one.key == key]
    for path in paths:
        files.discard(path)
    return bool(paths)


def remove_expired_silences(
    files: Files, states: Mapping[str, AlertState], night: date | None
) -> None:
    """Remove expired and replaced silences, as every night reads all of them.

    `states` are those of the alerts after `night`, by their keys.
    """
    found = list(_found(files))
    newest = _newest(one for _, one in found)
    for path, stored in found:
        if stored != newest[stored.key] or not is_in_force(stored, states.get(stored.key), night):
            files.discard(path)


def is_in_force(one: Silence, state: AlertState | None, night: date | None) -> bool:
    """Whether a silence is in force, by its alert's state after the newest night."""
    since: date | None = None
    severity: Severity = one.severity
    if state and state.finding and state.state == "firing":
        since, severity = state.since, state.finding.severity
    unsilenced = state.unsilenced if state else None
    return one.is_in_force(night or date.min, since, severity, unsilenced)


def with_silences(manifest: Manifest, found: Mapping[str, Silence]) -> Manifest:
    """A night's manifest with the silences in force added to its findings."""

    def of(finding: Finding) -> Silence | None:
        one = found.get(finding.key)
        since = finding.since if finding.state == "firing" else None
        if one is None:
            return None
        in_force = one.is_in_force(manifest.date, since, finding.severity, finding.unsilenced)
        return one if in_force else None

    findings = [one.model_copy(update={"silence": of(one)}) for one in manifest.findings]
    return manifest.model_copy(update={"findings": findings})


def _newest(found: Iterable[Silence]) -> dict[str, Silence]:
    newest: dict[str, Silence] = {}
    for stored in found:
        if stored.key not in newest or stored.at >= newest[stored.key].at:
            newest[stored.key] = stored
    return newest


def _found(files: Files) -> Iterator[tuple[str, Silence]]:
    for info in files.below(FOLDER):
        if found := find_record(files, info.path, Silence, "not a silence and is ignored"):
            yield info.path, found
