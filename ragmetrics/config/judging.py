"""What the judges may cost, how many rows they score, and who is asked first: the keys `budget`,
`sample`, `aggregate: cascade` and `embeddings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ragmetrics.config.base import SettingsModel, not_bool
from ragmetrics.config.endpoints import BaseUrl, Prices
from ragmetrics.config.judge import JudgeSettings
from ragmetrics.config.judge_kinds import JudgeKind, judge_kind
from ragmetrics.records import current_judge_name


class EmbeddingSettings(SettingsModel):
    """The embedder: `hashed` or `local` (no network), or an OpenAI-compatible endpoint."""

    openai_model: ClassVar[str] = "text-embedding-3-small"
    name: Literal["hashed", "local", "openai"] | None = None
    """None: it follows the judge: `openai` and `local` for a judge of that name, else `hashed`."""
    model: str | None = None
    """None: `text-embedding-3-small` for `openai`, `all-MiniLM-L6-v2` for `local`."""
    threads: int = Field(1, ge=1, le=1_000)
    """Number of threads of one call of `local`. Shards run in parallel already."""
    usd_per_million_tokens: float | None = Field(None, ge=0)
    """Price, to show and limit the cost. None: that of OpenAI's list at OpenAI; else unknown."""
    base_url: BaseUrl = None
    """None: the judge's."""
    api_key_env: str | None = None
    """None: the judge's."""

    @property
    def remote(self) -> bool:
        """True for an endpoint."""
        return self.name == "openai"

    @property
    def local(self) -> bool:
        """True for a model on this machine."""
        return self.name == "local"

    @property
    def hashed(self) -> bool:
        """True for hashed words, which are weighed by their frequency in the night."""
        return self.name == "hashed"

    @property
    def prices(self) -> Prices:
        """The price of its tokens; a vector has no completion."""
        return Prices(self.usd_per_million_tokens, completion=0.0)

    def usd(self, tokens: float) -> float | None:
        """Cost of tokens. None: no price is set."""
        return self.prices.usd(tokens, 0)


class Budget(SettingsModel):
    """Limits of what the judges may cost in a night. Where a limit is too low for all questions, a
    sample of them is judged."""

    max_requests: int | None = Field(None, ge=0)
    """Most requests of a run."""
    max_tokens: int | None = Field(None, ge=0)
    """Most tokens of a run, prompts and replies together."""
    max_usd: float | None = Field(None, ge=0, allow_inf_nan=False)
    """Highest cost of a run. It needs the prices of the judge."""

    @model_validator(mode="before")
    @classmethod
    def _mapping(cls, value: object) -> object:
        if value is None or value == "":  # `budget:` with nothing after it
            return {}
        if not isinstance(value, Mapping | cls):
            raise ValueError("should be a mapping such as {max_requests: 1000}")
        return value

    _numbers = field_validator("*", mode="before")(not_bool)

    @property
    def binds(self) -> bool:
        """True when any limit is set."""
        return any(limit is not None for _, limit in self)


class SampleSettings(SettingsModel):
    """The judge scores a sample of the rows; a cheap judge scores all rows."""

    rows: int | None = Field(None, ge=2)
    """Sample size per metric, among the rows that have all fields the metric needs."""
    half_width: float | None = Field(None, gt=0, lt=1)
    """Half the width of the confidence interval of the mean. The sample is as large as this
    requires."""
    strata: tuple[str, ...] = ()
    """Tags by which the sample is stratified: in proportion, at least two rows of each value."""
    draw: Literal["uniform", "active"] = "uniform"
    """`active`: rows that the cheap judge predicts badly are drawn more often."""
    seed: int = 0
    """Seed of the random draw."""
    cheap: Annotated[Literal["lexical", "learned"], BeforeValidator(current_judge_name)] = "lexical"
    """The judge of all rows. `learned` predicts the verdicts of the judge from those in the store;
    while there are too few of them, or where it is not better, it is the lexical judge."""

    @property
    def cheap_kind(self) -> JudgeKind:
        """The kind of the cheap judge."""
        return judge_kind(self.cheap)

    @property
    def learns(self) -> bool:
        """True if the cheap judge is fitted to verdicts in the store."""
        return self.cheap_kind.fitted

    _numbers = field_validator("rows", "half_width", "seed", mode="before")(not_bool)

    @model_validator(mode="after")
    def _one_size(self) -> SampleSettings:
        if (self.rows is None) == (self.half_width is None):
            raise ValueError("set either rows or half_width")
        return self


def check_alone(judges: Sequence[JudgeSettings]) -> None:
    """Raise ValueError for `also` in a panel, whose judges score what they can anyway."""
    if any(judge.also for judge in judges):
        raise ValueError(
            "judges: also: has no effect in a panel, where each judge scores all metrics that it "
            "can; add the other judge under `judges`"
        )


def check_cascade(judges: Sequence[JudgeSettings]) -> None:
    """Raise ValueError unless the judges, the cheap one first, can be a cascade.

    An earlier judge must show whether it is certain: a reranker by its grade, a decision model by
    its probabilities, a language model by repeats that agree.
    """
    if len(judges) < 2:
        raise ValueError("aggregate: cascade needs two `judges`, the cheap one first")
    for judge in judges[:-1]:
        if judge.lexical:
            raise ValueError(
                f"aggregate: cascade: the judge {judge.name} costs nothing; to use it first, set "
                "`sample: {draw: active}`, whose means stay valid where it is wrong"
            )
        if judge.reads_prompts and judge.repeats == 1:
            raise ValueError(
                f"aggregate: cascade: the judge {judge.name} needs `repeats: 2` or more, unless it "
                "is the last one: it is certain where its repeats agree"
            )
    if judges[-1].repeats > 1:
        raise ValueError("aggregate: cascade: `repeats` has no effect on the last judge")
