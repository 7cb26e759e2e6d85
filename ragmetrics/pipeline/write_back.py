"""Write-back by hand: sends a past night, or what waits in the outbox."""

from __future__ import annotations

from datetime import date

from ragmetrics.config import Settings
from ragmetrics.delivery import WriteBackReport, queue_night, send_waiting
from ragmetrics.errors import InputError
from ragmetrics.storage import Runs, open_store


def send_scores(
    settings: Settings, night: date | None = None, target: str | None = None, *, again: bool = False
) -> list[WriteBackReport]:
    """Send the scores of a night to the targets of `write_back:`, or to one of them.

    Without `night` it sends what waits in the outbox. With it, refused scores are tried again; with
    `again` also those that were sent. Raises InputError if nothing is configured or the night is
    not published, StoreError if the store cannot be read or written.
    """
    if settings.write_back is None:
        raise InputError("the settings have no `write_back:`: name a target there first")
    files = open_store(settings)
    if night:
        manifest = Runs(files).current(night)
        if manifest is None:
            raise InputError(f"{files.uri()}: the night of {night} is not published")
        queue_night(settings, files, manifest, target)
    return send_waiting(settings, files, night=night, only=target, again=again)
