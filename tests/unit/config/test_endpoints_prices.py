"""Prices that are known without settings: those of OpenAI's list, at OpenAI alone."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from ragmetrics.config import JudgeSettings, make_settings
from ragmetrics.config.endpoints import Prices, _table, listed_prices
from ragmetrics.scoring import check_judging

PROXY = "https://llm.example.com/v1"


def judge(**more: Any) -> JudgeSettings:
    """A judge at OpenAI."""
    return JudgeSettings.model_validate({"name": "openai", **more})


def test_the_default_judge_has_a_price() -> None:
    """A million prompt tokens of gpt-6-luna cost ten cents, replies fifty, cached tokens one."""
    chosen = judge()
    assert chosen.usd(1e6, 0) == pytest.approx(0.10)
    assert chosen.usd(0, 1e6) == pytest.approx(0.50)
    assert chosen.usd(1e6, 0, cached=1e6) == pytest.approx(0.01)
    assert chosen.usd_saved(1_000_000) == pytest.approx(0.09)


def test_a_batch_costs_half() -> None:
    """The same list, at the share of batches."""
    assert judge(name="openai-batch").usd(1e6, 1e6) == pytest.approx(0.30)


def test_a_dated_name_is_the_model() -> None:
    """A snapshot has the price of its model; an unknown model has none."""
    assert judge(model="gpt-4.1-mini-2025-04-14").usd(1e6, 0) == pytest.approx(0.40)
    assert judge(model="gpt-7-nova").usd(1e6, 0) is None


def test_another_server_has_no_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a proxy charges for the same model is not known, nor what Azure does."""
    assert judge(base_url=PROXY).usd(1, 1) is None
    assert judge(base_url="https://house.openai.azure.com/openai/v1").usd(1, 1) is None
    monkeypatch.setenv("OPENAI_BASE_URL", PROXY)
    assert judge().usd(1, 1) is None


def test_prices_of_the_settings_win() -> None:
    """Where one of prompts or completions is set, nothing is taken from the list."""
    chosen = judge(usd_per_million_prompt_tokens=3.0, usd_per_million_completion_tokens=4.0)
    assert chosen.prices == Prices(3.0, None, 4.0)
    assert judge(usd_per_million_prompt_tokens=3.0).usd(1, 1) is None


def test_embeddings_have_their_listed_price() -> None:
    """At the judge's address; the default model is that of the embedder."""
    embedder = make_settings({"judge": "openai"}).embedder
    assert embedder.usd(1e6) == listed_prices(embedder.openai_model, None).prompt == 0.02
    elsewhere = make_settings({"judge": {"name": "openai", "base_url": PROXY}}).embedder
    assert elsewhere.usd(1e6) is None
    assert make_settings({"judge": "lexical"}).embedder.usd(1e6) is None


def test_a_budget_in_dollars_needs_no_prices_at_openai() -> None:
    """The default judge has all prices."""
    check_judging(make_settings({"judge": "openai", "budget": {"max_usd": 1}}))


def test_the_list_has_a_date() -> None:
    """And a source, so that everybody can see how old it is."""
    assert date.fromisoformat(_table()["date"]) >= date(2026, 11, 27)
    assert _table()["source"].startswith("https://")
