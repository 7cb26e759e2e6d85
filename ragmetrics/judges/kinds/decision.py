"""A decision model at an endpoint: every allowed answer gets a probability, no text is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from pydantic import Field

from ragmetrics.config import JudgeKind, JudgeSettings, Settings
from ragmetrics.errors import SettingsError
from ragmetrics.judges.base import Judge, JudgeParts, Reply
from ragmetrics.judges.kinds.openai import openai
from ragmetrics.records import Ask


class DecisionSettings(JudgeSettings):
    """A decision model."""

    api: Literal["auto", "decisions", "systemone", "logprobs"] = "auto"
    """`decision` only: the protocol. `auto`: `decisions`, or `systemone` if the endpoint lacks
    that. `logprobs`: any chat model of a server that returns `top_logprobs`, such as llama.cpp,
    Ollama or vLLM; one request for each question."""
    round: bool = False
    """`decision` only: use the likeliest verdict in place of the expectation, as to compare with
    tools that have no probabilities."""
    max_questions: int = Field(400, ge=1, le=100_000)
    """`decision` only: most questions in one request. The questions about a row are split beyond
    it."""

    @property
    def writes(self) -> bool:
        """True for a chat model, which writes one token for each question."""
        return self.api == "logprobs"


def _make(judge: DecisionSettings, parts: JudgeParts) -> Judge:
    from ragmetrics.judges.decision import DecisionJudge

    return DecisionJudge(parts.access(judge), judge)


def _check(judge: DecisionSettings, settings: Settings) -> None:
    """Raise SettingsError for rounded verdicts in a cascade: it would be certain of all of them."""
    if judge.round and settings.aggregate == "cascade" and judge is not settings.panel[-1]:
        raise SettingsError(
            "judge: round: a cascade asks whether the decision model is certain, by its "
            "probabilities; leave `round` out"
        )


def _forecast(judge: DecisionSettings) -> Callable[[Ask], Awaitable[Reply]]:
    from ragmetrics.judges.decision import forecast_decisions

    return forecast_decisions(judge)


decision = JudgeKind(
    "decision",
    _make,
    DecisionSettings,
    remote=True,
    live=True,
    decides=True,
    answers=lambda prompt: prompt.decides,
    check=_check,
    forecast=_forecast,
    ends=openai.ends,
    sample={"base_url": "{url}"},
)
