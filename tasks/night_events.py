"""The events of a night, for automations of the team: published, regressed, resolved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from ragmetrics.dashboard import find_night_status
from ragmetrics.records import Finding, Manifest
from ragmetrics.text import clean

PUBLISHED = "rag.night.published"
REGRESSED = "rag.night.regressed"
RESOLVED = "rag.night.resolved"
_MOST = 20
"""Metrics and alerts of a payload: a server takes no event above 1.5 MB, templates read few."""
_LONGEST = 500
_MEAN = {"metric", "mean", "low", "high", "scored"}


def night_events(manifest: Manifest, page: str) -> list[dict[str, Any]]:
    """The events of a published run: that it is there, which alerts fire anew, which have ended.

    The id depends on what happened: a repetition of the run, or another run of the night with the
    same news, has the same events. `manifest` is redacted where messages are.
    """
    return [
        {
            "id": str(uuid5(NAMESPACE_URL, f"{event}:{manifest.dataset}:{manifest.date}:{what}")),
            "occurred": datetime.now(UTC).isoformat(),
            "event": event,
            "resource": {
                "prefect.resource.id": f"rag.night.{manifest.dataset}.{manifest.date}",
                "prefect.resource.name": f"{manifest.dataset} {manifest.date}",
                "rag.dataset": manifest.dataset,
            },
            "payload": _payload(manifest, findings, page),
        }
        for event, what, findings in _news(manifest)
    ]


def _news(manifest: Manifest) -> Iterator[tuple[str, str, list[Finding]]]:
    """Each event with what identifies it, and its findings."""
    findings = manifest.findings
    yield PUBLISHED, manifest.run, [finding for finding in findings if finding.state == "firing"]
    for event, transitions in ((REGRESSED, ("fired", "escalated")), (RESOLVED, ("resolved",))):
        changed = [finding for finding in findings if finding.transition in transitions]
        if changed:
            yield event, ",".join(sorted(f"{one.key}={one.transition}" for one in changed)), changed


def _payload(manifest: Manifest, findings: Sequence[Finding], page: str) -> dict[str, Any]:
    """The night's headline, its means, and these alerts."""
    status, source = find_night_status(manifest), manifest.source
    return {
        "dataset": manifest.dataset,
        "date": manifest.date.isoformat(),
        "run": manifest.run,
        "supersedes": manifest.supersedes,
        "state": status.state,
        "headline": clean(status.sentence, _LONGEST),
        "rows": source.rows,
        "quarantined": source.quarantined,
        "problems": len(manifest.problems),
        "metrics": [summary.model_dump(include=_MEAN) for summary in manifest.metrics[:_MOST]],
        "alerts": [_alert(finding) for finding in findings[:_MOST]],
        "alerts_omitted": max(0, len(findings) - _MOST),
        "page": page,
    }


def _alert(finding: Finding) -> dict[str, Any]:
    return {
        "rule": clean(finding.rule, _LONGEST),
        "metric": finding.metric,
        "severity": finding.severity,
        "transition": finding.transition,
        "since": finding.since.isoformat() if finding.since else None,
        "sentence": clean(finding.message, _LONGEST),
    }
