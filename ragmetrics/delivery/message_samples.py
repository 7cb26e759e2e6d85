"""Sample messages: one of every kind, for a made-up dataset, by the code that writes real messages.

The nights, findings and the gate are data in `message_samples.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from ragmetrics.config import AlertSettings
from ragmetrics.delivery.alert_store import AlertStore
from ragmetrics.delivery.state import NO_SILENCES, advance_states
from ragmetrics.messages import Message, compose, compose_failed_gate, compose_gate
from ragmetrics.records import Finding, Gate, Manifest, Silence
from ragmetrics.rules import check_health

NIGHT = date(2026, 11, 19)
_DATA = Path(__file__).with_suffix(".json")
_PAGES = "https://dashboards.example.com/ragmetrics"
_RUN = "https://prefect.example.com/runs/flow-run/6f0c"
_REMIND_DAYS = 7
_MORNING = datetime(2026, 11, 20, 2, tzinfo=UTC)


def sample_messages(redact: bool = False) -> list[tuple[str, Message]]:
    """Every kind of message with its title; `redact` as in the settings."""
    data = json.loads(_DATA.read_text(encoding="utf-8"))
    findings = {name: Finding.model_validate(one) for name, one in data["findings"].items()}
    nights = [
        (one["title"], _night_message(data, one, findings, redact)) for one in data["messages"]
    ]
    gate = Gate.model_validate(data["gate"])
    held = compose_gate(gate, page=f"{_PAGES}/builds.html", redact=redact, run_url=_RUN)
    return [*nights, ("Index build held", held), ("Index build without verdict", _failed_gate())]


def _night_message(
    data: Mapping[str, Any],
    sample: Mapping[str, Any],
    findings: Mapping[str, Finding],
    redact: bool,
) -> Message:
    """The message of a sample's last night; without findings, those of the data quality."""
    night = Manifest.model_validate({**data["night"], **sample["changes"]})
    history: list[tuple[int, Sequence[Finding]]] = [
        (one["days_ago"], [findings[name] for name in one["names"]])
        for one in sample.get("findings", ())
    ] or [(0, check_health(AlertSettings(), night))]
    alerts, found = AlertStore(), list[Finding]()
    for days_ago, own in history:
        day = NIGHT - timedelta(days=days_ago)
        alerts, found = advance_states(alerts, own, day, _REMIND_DAYS, _silences(alerts))
    page = f"{_PAGES}/{NIGHT}/index.html"
    message = compose(night, found, dashboard=page, redact=redact, run_url=_RUN)
    if message is None:
        raise ValueError(f"sample {sample['title']!r} has no transition")
    return message


def _silences(alerts: AlertStore) -> Mapping[str, Silence]:
    """Where there are three alerts, an acknowledgement of the second and a snooze of the third."""
    if len(alerts.states) != 3:
        return NO_SILENCES
    _, second, third = alerts.states
    at, until = _MORNING, NIGHT + timedelta(days=4)
    since = alerts.states[second].since
    seen = Silence(key=second, at=at, by="ada", note="the reranker is rolled back", since=since)
    return {second: seen, third: Silence(key=third, at=at, by="ada", until=until)}


def _failed_gate() -> Message:
    """The message of an announced build whose log is missing."""
    reason = "index build: logs: s3://example/builds/2026-11-21/: there is no such file"
    return compose_failed_gate("help-centre", reason, '{"build": "2026-11-21"}', "3f0c9e0e", _RUN)
