"""Sends batches to one target: repeats what failed, and halves what was refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from ragmetrics.config import WriteBackSettings
from ragmetrics.delivery.write_back.evaluation_results import EvaluationResult
from ragmetrics.delivery.write_back.target import BatchRefused, Outcome, Target, TargetError
from ragmetrics.http import Backoff

_LONGEST_PAUSE = 32
"""In first pauses."""


@dataclass
class Sender:
    """Sends to one target for one run, and waits for it no longer than the settings allow."""

    target: Target
    settings: WriteBackSettings
    accepted: int = 0
    """Results that the target took."""
    _refused_singly: int = 0
    """Results that were refused alone, after halves of their batch were."""
    _backoff: Backoff = field(init=False)

    def __post_init__(self) -> None:
        first = self.settings.retry_delay_seconds
        self._backoff = Backoff(
            first=first, longest=_LONGEST_PAUSE * first, seconds=self.settings.retry_seconds
        )

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
        self.accepted += len(batch) - len(outcome.refused) - len(outcome.early) - outcome.unnamed
        return outcome

    def _send(self, batch: Sequence[EvaluationResult]) -> Outcome:
        refused: dict[str, str] = {}
        early: dict[str, str] = {}
        left, unnamed, reason = list(batch), 0, ""
        while left:
            try:
                outcome = self._backoff.call(partial(self.target.send, left))
            except BatchRefused as error:
                if len(left) == 1:
                    self._refused_singly += 1
                    refused[left[0].digest] = str(error)
                    break
                middle = len(left) // 2
                halves = [self._send(left[:middle]), self._send(left[middle:])]
                for half in halves:
                    refused |= half.refused
                    early |= half.early
                    unnamed, reason = unnamed + half.unnamed, reason or half.reason
                break
            refused |= outcome.refused
            early |= outcome.early
            unnamed, reason = unnamed + outcome.unnamed, reason or outcome.reason
            left = [one for one in left if one.digest in outcome.again]
            if left:
                said = next(iter(outcome.again.values()))
                self._backoff.pause(TargetError(said, transient=True))
        return Outcome(refused, early, {}, unnamed, reason)
