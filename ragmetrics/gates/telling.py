"""Telling people: what a gate needs them for once, and a build without verdict once per event.

`told` is written to the store after Slack confirmed: at least once, nothing lost.
"""

from __future__ import annotations

from datetime import UTC, datetime

from ragmetrics.alerts.channels import Channel, slack_channel
from ragmetrics.alerts.deliver import page_link
from ragmetrics.alerts.gate_message import compose_gate, compose_undecided
from ragmetrics.alerts.markup import clean
from ragmetrics.gates.kept import load_gate, save_gate
from ragmetrics.gates.records import Gate
from ragmetrics.gates.undecided import Undecided, keep, was_told
from ragmetrics.report.builds_page import PAGE, anchor
from ragmetrics.settings import Settings
from ragmetrics.stage import open_store

_LONGEST = 2_000


def builds_link(settings: Settings, build: str) -> str:
    """Where people find a build on the dashboard."""
    return page_link(settings, open_store(settings), f"{PAGE}#{anchor(build)}")


def is_news(gate: Gate) -> bool:
    """Whether people have to hear of a gate: the build is held, or could not be compared at all."""
    return gate.verdict == "hold" or (gate.verdict == "inconclusive" and not gate.scored_metrics)


def tell_gate(settings: Settings, gate: Gate, run_url: str | None = None) -> Gate:
    """Send a gate that is news to Slack, unless it was; return it with `told` as it is now.

    Without a webhook or bot in the environment nothing is sent, and `told` stays false. Raises
    SlackError where Slack did not confirm: a repeat sends it.
    """
    slack = _slack(settings)
    if gate.told or slack.lacks or not is_news(gate):
        return gate
    page = builds_link(settings, gate.build)
    slack.send(compose_gate(gate, page=page, redact=settings.alerts.redact, run_url=run_url))
    told, files = gate.model_copy(update={"told": True}), open_store(settings)
    if load_gate(files, gate.build) == gate:  # else there is a newer verdict, which is not told
        save_gate(files, told)
    return told


def tell_undecided(
    settings: Settings,
    reason: str,
    carried: str,
    event_id: str | None = None,
    run_url: str | None = None,
) -> Undecided:
    """Keep that a build got no verdict, and send it to Slack unless this event's failing was.

    `carried` is what the event said, as text. Raises SlackError where Slack did not confirm. A
    store that cannot be reached keeps nobody from being told.
    """
    files, slack = open_store(settings), _slack(settings)
    now = Undecided(
        dataset=settings.dataset,
        reason=clean(reason, _LONGEST),
        carried=clean(carried, _LONGEST),
        event_id=clean(event_id, 100) if event_id else None,
        at=datetime.now(UTC),
    )
    if was_told(files, now):
        return now.model_copy(update={"told": True})
    keep(files, now)
    if slack.lacks:
        return now
    shown = "" if settings.alerts.redact else now.carried
    slack.send(compose_undecided(now.dataset, now.reason, shown, now.event_id, run_url))
    told = now.model_copy(update={"told": True})
    keep(files, told)
    return told


def _slack(settings: Settings) -> Channel:
    return slack_channel(settings.alerts, open_store(settings))
