"""What tests of every package build again and again: settings, their file, a judge at a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pandas as pd
import pytest
import yaml

from ragmetrics.config import Settings, make_settings
from ragmetrics.records import LogRow, Score, Steps


class HasBaseUrl(Protocol):
    """A server of the tests that speaks OpenAI's API."""

    @property
    def base_url(self) -> str:
        """Where the API begins."""
        ...


def night_values(
    folder: Path | str,
    logs: str = "logs/dt={date}/",
    store: str = "store",
    metrics: Sequence[str] = ("context_recall",),
    rules: Sequence[Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Settings of nights, as a file has them, whose logs and store lie in a folder or bucket.

    Judges are asked no canaries, unless `alerts: checks` says so: requests are those of rows.
    """
    alerts = more.get("alerts", {})
    more["alerts"] = {**alerts, "checks": {"canaries": 0, **alerts.get("checks", {})}}
    if rules is not None:
        more["alerts"] = {"rules": list(rules), **more["alerts"]}
    places = {"logs": f"{folder}/{logs}", "store": f"{folder}/{store}"}
    return {**places, "metrics": list(metrics), **more}


def night_settings(folder: Path | str, **values: Any) -> Settings:
    """The same, validated."""
    return make_settings(night_values(folder, **values))


def save_settings(
    folder: Path,
    values: Mapping[str, Any] | None = None,
    name: str = "ragmetrics.yaml",
    **more: Any,
) -> Path:
    """Write a settings file into a folder; return its path."""
    path = folder / name
    path.write_text(yaml.safe_dump({**(values or {}), **more}), encoding="utf-8")
    return path


def judge_at(server: HasBaseUrl, name: str = "openai", **more: Any) -> dict[str, Any]:
    """The settings of a judge at a server, as a file has them."""
    return {"name": name, "base_url": server.base_url, **more}


def a_row(*contexts: str, **fields: Any) -> LogRow:
    """A row in which these contexts were retrieved."""
    values = {"id": "row-1", "user_input": "When was the tower opened?", **fields}
    return LogRow(**{"retrieved_contexts": contexts, **values})


def end(steps: Steps[Score], *answers: Any) -> Any:
    """What steps return after these answers; without one they may ask nothing."""
    with pytest.raises(StopIteration) as stop:
        steps.send(list(answers)) if answers else next(steps)
    return stop.value.value


def scores_of(store: Path) -> pd.DataFrame:
    """All scores of a store in a folder, in a fixed order."""
    parts = sorted((store / "scores").rglob("*.parquet"))
    return pd.concat([pd.read_parquet(part) for part in parts], ignore_index=True)
