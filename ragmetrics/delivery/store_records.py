"""The records that delivery stores, by the pattern of their paths: `doctor` reads some of each."""

from __future__ import annotations

from ragmetrics.delivery.channel import Threads
from ragmetrics.delivery.outbox import MessageBatch
from ragmetrics.delivery.state import AlertStates
from ragmetrics.delivery.write_back.outbox import WaitingNight
from ragmetrics.records import Record

RECORDS: tuple[tuple[str, type[Record]], ...] = (
    (r"alerts/state\.json", AlertStates),
    (r"alerts/threads\.json", Threads),
    (r"alerts/(?:outbox|delivered)/.*\.json", MessageBatch),
    (r"write-back/outbox/.*\.json", WaitingNight),
)
