from .delivery import (
    WriteBackReport as WriteBackReport,
    queue_night as queue_night,
    send_waiting as send_waiting,
    target_problems as target_problems,
)
from .outbox import GIVEN_UP as GIVEN_UP, WaitingNight as WaitingNight, waiting as waiting
