"""Sends batches to one target: repeats what failed, and halves what was refused."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from ragmetrics.config import WriteBackSettings
from ragmetrics.write_back.evaluation_results import EvaluationResult
from ragmetrics.write_back.target import BatchRefused, Outcome, Target, TargetError

_LONGEST_PAUSE = 32
"""In first pauses."""


@dataclass
class Sender:
    """Sends to one target for one run, and waits for it no longer than the settings allow."""

    target: Target
    settings: WriteBackSettings
    accepted: int = 0
    """Results that the target took."""
    waited: float = 0.0
    """Seconds spent on failed requests and on pauses after them."""
    _refused_singly: int = 0
    """Results that were refused alone, after halves of their batch were."""
    _pause: float = field(init=False)

    def __post_init__(self) -> None:
        self._pause = self.settings.retry_delay_seconds

    def send(self, batch: Sequence[EvaluationResult]) -> Outcome:
        """Send a batch until each result is taken or refused.

        Raises TargetError if the target fails for too long, and if it refuses everything from the
        beginning: then the settings are wrong, and not the results.
        """
        singly = self._refused_singly
        outcome = self._send(batch)
        if self.accepted == 0 and self._refused_singly - singly == len(batch) > 1:
            reason = next(iter(outcome.refused.values()))
            raise TargetError(f"every score is refused: {reason}", transient=False)
        self.accepted += len(batch) - len(outcome.refused) - outcome.unnamed
        return outcome

    def _send(self, batch: Sequence[EvaluationResult]) -> Outcome:
        refused: dict[str, str] = {}
        left, unnamed, reason = list(batch), 0, ""
        while left:
            try:
                outcome = self._repeated(left)
            except BatchRefused as error:
                if len(left) == 1:
                    self._refused_singly += 1
                    return Outcome(refused | {left[0].digest: str(error)}, {}, unnamed, reason)
                middle = len(left) // 2
                halves = [self._send(left[:middle]), self._send(left[middle:])]
                for half in halves:
                    refused |= half.refused
                    unnamed, reason = unnamed + half.unnamed, reason or half.reason
                break
            refused |= outcome.refused
            unnamed, reason = unnamed + outcome.unnamed, reason or outcome.reason
            left = [one for one in left if one.digest in outcome.again]
            if left:
                self._wait(TargetError(next(iter(outcome.again.values())), transient=True))
        return Outcome(refused, {}, unnamed, reason)

    def _repeated(self, batch: Sequence[EvaluationResult]) -> Outcome:
        """Send a batch; repeat it as long as the target fails for the moment."""
        while True:
            begun = time.monotonic()
            try:
                outcome = self.target.send(batch)
            except TargetError as error:
                self.waited += time.monotonic() - begun
                if not error.transient:
                    raise
                self._wait(error)
            else:
                self._pause = self.settings.retry_delay_seconds
                return outcome

    def _wait(self, error: TargetError) -> None:
        """Pause after an error. Raises it if the target has failed for too long."""
        pause = max(self._pause, error.wait or 0.0)
        if self.waited + pause > self.settings.retry_seconds:
            raise error
        time.sleep(pause)
        self.waited += pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE * self.settings.retry_delay_seconds)
