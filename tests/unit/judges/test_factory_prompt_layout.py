"""`prompt_layout: auto`: which judges get prompts that begin with the row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import JudgeSettings, make_settings
from ragmetrics.judges import layout_of
from ragmetrics.judges.factory import make_judge
from ragmetrics.judges.live import FORMATS, Envelope, request_body
from ragmetrics.judges.word_frequencies import Corpus
from ragmetrics.people.calibration.stored_verdicts import stored_verdicts
from ragmetrics.pipeline import evaluate, run_night
from ragmetrics.scoring import metric_fingerprints
from ragmetrics.storage import open_store
from tests.builders import judge_at, night_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, write_jsonl
from tests.unit.config.test_judge_kinds_prompt_layout import METRICS, arranged, asks_of, long_rows

LOCAL = "http://127.0.0.1:8000/v1"
MODEL = "gpt-4.1-mini"
"""A model whose provider finds equal beginnings by itself, unlike the default one."""


@pytest.fixture(autouse=True)
def _no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def is_row_first(**judge: Any) -> bool:
    """Whether requests of the judge `openai` with these settings begin with the row."""
    return layout_of(JudgeSettings(**{"name": "openai", "model": MODEL, **judge})) is not None


@pytest.mark.parametrize(
    "base_url",
    [
        None,
        "https://api.openai.com/v1",
        "https://eu.api.openai.com/v1",
        "https://ours.openai.azure.com/openai/v1",
    ],
)
def test_a_provider_that_caches_from_1024_tokens_gets_the_row_first(base_url: str | None) -> None:
    """OpenAI, which has no base_url, and Azure OpenAI."""
    assert is_row_first(base_url=base_url)


@pytest.mark.parametrize(
    "base_url",
    [
        LOCAL,
        "http://litellm.internal/v1",
        "https://openai.com.example.com/v1",
        "https://notopenai.com/v1",
        "https://generativelanguage.googleapis.com/v1beta/openai",
    ],
)
def test_every_other_server_gets_the_task_first(base_url: str) -> None:
    """Servers that cache by block, and providers that cache from other lengths."""
    assert not is_row_first(base_url=base_url)


def test_a_price_of_cached_tokens_chooses_the_row_first() -> None:
    """Who sets it says that this server has a cache, at any address."""
    assert is_row_first(base_url=LOCAL, usd_per_million_cached_tokens=0.1)
    assert is_row_first(base_url=LOCAL, usd_per_million_cached_tokens=0)


@pytest.mark.parametrize(
    ("model", "row_first"),
    [
        ("gpt-4o", True),
        ("gpt-5", True),
        ("gpt-5.5-mini", True),
        ("o4-mini", True),
        ("gpt-5.6-terra", False),
        ("openai/gpt-5.10", False),
        ("gpt-6", False),
        ("GPT-5.6", False),
        ("gpt-41-of-azure", True),
        ("gpt-35-turbo", True),
    ],
)
def test_a_model_whose_cache_needs_breakpoints_gets_the_task_first(
    model: str, row_first: bool
) -> None:
    """From GPT-5.6 an equal beginning inside a message is not found, whatever the price."""
    assert is_row_first(model=model) is row_first
    assert is_row_first(model=model, usd_per_million_cached_tokens=0.1) is row_first


def test_the_address_of_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests go to OPENAI_BASE_URL where the settings have no base_url."""
    monkeypatch.setenv("OPENAI_BASE_URL", LOCAL)
    assert not is_row_first()
    assert is_row_first(base_url="https://api.openai.com/v1")


def test_a_layout_that_is_set_wins() -> None:
    """At every server, and whatever cached tokens cost."""
    assert not is_row_first(prompt_layout="task_first", usd_per_million_cached_tokens=0.1)
    assert is_row_first(prompt_layout="row_first", base_url=LOCAL, model="gpt-6")


def test_a_judge_that_reads_no_prompts_has_no_layout() -> None:
    """A reranker gets no instructions."""
    for name in ("rerank", "lexical"):
        assert not is_row_first(
            name=name,
            base_url=LOCAL if name == "rerank" else None,
            usd_per_million_cached_tokens=0.1,
        )


def test_a_batch_has_the_layout_of_the_live_judge() -> None:
    """They share their replies and their trend (decision 2)."""
    for judge in ({}, {"base_url": LOCAL}, {"model": "gpt-6"}):
        assert is_row_first(**judge) is is_row_first(name="openai-batch", **judge)


def test_the_fingerprint_of_a_local_server_is_that_of_before() -> None:
    """Stores of judges whose requests begin with the task keep their trend lines."""

    def found(**judge: Any) -> str:
        settings = {
            "metrics": ["context_recall"],
            "judge": {"name": "openai", "model": MODEL, **judge},
        }
        return metric_fingerprints(make_settings(settings))["context_recall"]

    assert found(base_url="http://127.0.0.1:9/v1") == "c98abfac69ce"
    assert found(prompt_layout="task_first") == "cd45ebf6cd39"
    assert found() == found(name="openai-batch") == found(prompt_layout="row_first")


def test_requests_that_begin_with_the_row_have_no_schema() -> None:
    """A provider reads the schema first, so requests with two schemas would share nothing."""
    judge = JudgeSettings(name="openai")
    for name, ask in arranged().items():
        kind = "json_schema" if name == "grade" else "json_object"
        assert request_body(judge, ask, FORMATS[0])["response_format"]["type"] == kind
        sent = json.loads(Envelope(judge, ask.prompt, 0).fill(ask))
        assert sent["response_format"]["type"] == kind
    plain = {ask.prompt.name: ask for ask in asks_of()}["needed"]
    assert request_body(judge, plain, FORMATS[0])["response_format"]["type"] == "json_schema"


def test_the_learned_judge_finds_the_verdicts_of_this_layout(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """They are in the store under what was sent, and are learned for the prompt by itself."""

    def prompts(store: str, layout: str) -> set[str]:
        judge = judge_at(judge_server, prompt_layout=layout)
        write_jsonl(tmp_path / "logs" / f"{NIGHT}.jsonl", long_rows(4))
        settings = night_settings(
            tmp_path, logs="logs/{date}.jsonl", store=store, metrics=METRICS, judge=judge
        )
        run_night(settings, NIGHT)
        found = stored_verdicts(settings, settings.judge, open_store(settings))
        return {one.ask.prompt.digest for one in found}

    assert prompts("a", "row_first") == prompts("b", "task_first") != set()


@pytest.mark.parametrize("price", [None, 0.1])
def test_a_recording_is_replayed_in_the_layout_in_which_it_was_made(
    tmp_path: Path, judge_server: JudgeServer, price: float | None
) -> None:
    """Without saying so: the recording knows its layout."""
    judge = judge_at(judge_server, model=MODEL, usd_per_million_cached_tokens=price)
    path, rows = tmp_path / "replies.jsonl", long_rows(3)
    made = evaluate(rows, METRICS, settings=make_settings({"judge": judge}), record=path)
    replayed = make_judge(JudgeSettings(name=f"recorded:{path}"), Corpus())
    assert (layout_of(JudgeSettings(name=f"recorded:{path}"), replayed) is not None) is (
        price is not None
    )
    again = evaluate(rows, METRICS, judge=f"recorded:{path}")
    assert [metric.mean for metric in again.manifest.metrics] == [
        metric.mean for metric in made.manifest.metrics
    ]
    assert not any(metric.status.get("judge_failed") for metric in again.manifest.metrics)
