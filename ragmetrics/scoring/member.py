"""A judge of the panel, with what it takes to send requests to it."""

from __future__ import annotations

from dataclasses import dataclass

from ragmetrics.judges import JudgeClient, can_answer
from ragmetrics.metrics import Metric


@dataclass
class Member:
    """A judge of the panel."""

    client: JudgeClient
    repeats: int = 1

    @property
    def name(self) -> str:
        """The name of the judge."""
        return self.client.name

    def can_score(self, metric: Metric) -> bool:
        """Whether the judge can answer all prompts of a metric."""
        return can_answer(self.client.judge, metric.prompts)
