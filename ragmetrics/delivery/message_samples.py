"""Sample messages: one of every kind, for a made-up dataset, by the code that writes real messages.

The nights, findings and the gate are data in `message_samples.json`; each check has a sample of its
own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from ragmetrics.delivery.state import NO_SILENCES, AlertStates, advance_states
from ragmetrics.messages import Message, compose, compose_failed_gate, compose_gate
from ragmetrics.records import Finding, Gate, Manifest, Silence
from ragmetrics.rules import Check, Sample, used_checks

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
        (sample["title"], _night_message(data, sample, findings, redact))
        for sample in data["messages"]
    ]
    nights += [_check_message(data, check, redact) for check in used_checks() if check.sample]
    gate = Gate.model_validate(data["gate"])
    held = compose_gate(gate, page=f"{_PAGES}/builds.html", redact=redact, run_url=_RUN)
    return [*nights, ("Index build held", held), ("Index build without verdict", _failed_gate())]


def _night_message(
    data: Mapping[str, Any],
    sample: Mapping[str, Any],
    findings: Mapping[str, Finding],
    redact: bool,
) -> Message:
    """The message of a sample's last night."""
    night = Manifest.model_validate({**data["night"], **sample["changes"]})
    history = [
        (night["days_ago"], [findings[name] for name in night["names"]])
        for night in sample["findings"]
    ]
    return _compose(sample["title"], night, history, redact)


def _check_message(data: Mapping[str, Any], check: Check, redact: bool) -> tuple[str, Message]:
    """The message of a night with the sample finding of a check, and its title."""
    sample = check.sample or Sample(check.term, "", "")
    night = Manifest.model_validate({**data["night"], **sample.night})
    history = [(0, [check.sample_finding(night.dataset)])]
    return sample.title, _compose(sample.title, night, history, redact)


def _compose(
    title: str, night: Manifest, history: Sequence[tuple[int, Sequence[Finding]]], redact: bool
) -> Message:
    alerts, shown = AlertStates(), list[Finding]()
    for days_ago, findings in history:
        day = NIGHT - timedelta(days=days_ago)
        alerts, shown = advance_states(alerts, findings, day, _REMIND_DAYS, _silences(alerts))
    page = f"{_PAGES}/{NIGHT}/index.html"
    message = compose(night, shown, dashboard=page, redact=redact, run_url=_RUN)
    if message is None:
        raise ValueError(f"sample {title!r} has no transition")
    return message


def _silences(alerts: AlertStates) -> Mapping[str, Silence]:
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
