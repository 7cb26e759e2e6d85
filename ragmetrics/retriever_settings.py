"""Settings of the retriever that replays the golden questions against a new index."""

from __future__ import annotations

from pydantic import Field, model_validator

from ragmetrics.judge_settings import Part


class RetrieverSettings(Part):
    """An HTTP endpoint with a request template, or a Python function."""

    url: str | None = None
    entrypoint: str | None = None
    """`package.module:function`"""
    concurrency: int = Field(8, ge=1)
    timeout_seconds: float = Field(30.0, gt=0)
    retries: int = Field(4, ge=0)

    @model_validator(mode="after")
    def _one_of_them(self) -> RetrieverSettings:
        if (self.url is None) == (self.entrypoint is None):
            raise ValueError("say url or entrypoint, one of them")
        return self
