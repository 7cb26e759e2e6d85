"""A reranker at an endpoint: it grades contexts by thresholds of its scores."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

from pydantic import model_validator

from ragmetrics.config import JudgeKind, JudgeSettings, Settings
from ragmetrics.errors import SettingsError
from ragmetrics.judges.base import Judge, JudgeParts, Reply
from ragmetrics.records import Ask


class RerankSettings(JudgeSettings):
    """A reranker."""

    thresholds: tuple[float, float] | None = None
    """`rerank` only: the scores from which a context gets grade 1 and grade 2. `ragmetrics
    calibrate` fits them."""

    @model_validator(mode="after")
    def _reranks(self) -> RerankSettings:
        if self.base_url is None:
            raise ValueError("base_url: the judge rerank needs the address of its server")
        if self.thresholds and not -math.inf < self.thresholds[0] <= self.thresholds[1] < math.inf:
            raise ValueError(
                "thresholds: should be two numbers, the second not below the first, such as "
                "[0.2, 0.6]"
            )
        return self


def _make(judge: RerankSettings, parts: JudgeParts) -> Judge:
    from ragmetrics.judges.rerank import RerankJudge

    return RerankJudge(parts.access(judge), judge)


def _forecast(judge: RerankSettings) -> Callable[[Ask], Awaitable[Reply]]:
    from ragmetrics.judges.rerank import forecast_rerank

    return forecast_rerank()


def _check(judge: RerankSettings, settings: Settings) -> None:
    """Raise SettingsError for the reranker of the retriever: it would judge itself, and find its
    own first contexts the best.
    """
    ranks = settings.retriever.reranker if settings.retriever else None
    if ranks and _model_name(judge.model) == _model_name(ranks):
        raise SettingsError(
            f"judge: the retriever ranks by {ranks} (`retriever: reranker:`), so the judge "
            "rerank would judge itself; choose another model"
        )


def _model_name(model: str) -> str:
    """The name of a model without its owner."""
    return model.rpartition("/")[2].casefold()


rerank = JudgeKind(
    "rerank",
    _make,
    RerankSettings,
    remote=True,
    live=True,
    answers=lambda prompt: prompt.name == "grade",
    forecast=_forecast,
    check=_check,
    sample={"base_url": "{url}", "thresholds": (0.2, 0.6)},
)
