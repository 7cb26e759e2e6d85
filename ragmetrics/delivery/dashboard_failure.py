"""The message that a night's dashboard pages failed. Alerts do not wait for pages."""

from __future__ import annotations

import logging

from ragmetrics.config import Settings
from ragmetrics.delivery.channel import Unconfirmed, channels
from ragmetrics.messages import Header, Message, Note, Section, links
from ragmetrics.records import Manifest
from ragmetrics.storage import Files
from ragmetrics.text import clean

log = logging.getLogger(__name__)


def notify_dashboard_failure(
    settings: Settings, files: Files, manifest: Manifest, reason: str, run_url: str | None = None
) -> bool:
    """Notify every channel that a night's pages failed; return whether the default channel
    confirmed.

    Nothing is stored: where a channel does not confirm, only the failed run shows the problem.
    """
    message = compose_dashboard_failure(manifest, reason, run_url)
    confirmed = False
    for channel in channels(settings.alerts, files):
        if channel.missing_variable or not channel.accepts("warning"):
            continue
        try:
            channel.send(message)
        except Unconfirmed as error:
            log.error("%s: dashboard failure not delivered: %s", channel.name, error)
        else:
            confirmed = confirmed or channel.is_default
    return confirmed


def compose_dashboard_failure(
    manifest: Manifest, reason: str, run_url: str | None = None
) -> Message:
    """The message of a night whose pages could not be written."""
    title = f"🟡 Warning: the dashboard could not be written for {manifest.date}"
    what = (
        "Links to this night lead to no page, or to an old page. Its alerts are valid. "
        "The next run writes the missing pages."
    )
    blocks = [
        Header(title),
        Section("Why", lines=(clean(reason, 1_000),)),
        Note(f"{clean(manifest.dataset, 80)}. {what}"),
        *links([("run", run_url)]),
    ]
    text = clean(f"{title}: {clean(reason, 150)} ({manifest.dataset})", 300)
    return Message(text=text, blocks=blocks, tone="warning")
