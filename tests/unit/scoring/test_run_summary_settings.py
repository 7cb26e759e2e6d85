"""The settings that a night keeps and shows: no secret is among them."""

from __future__ import annotations

import json

from ragmetrics.config import make_settings
from ragmetrics.scoring.run_summary import HIDDEN, public_settings


def test_the_chief_settings_stand_even_where_nothing_was_said() -> None:
    """The defaults of all others are left out."""
    assert set(public_settings(make_settings({}))) == {
        "dataset",
        "logs",
        "store",
        "metrics",
        "judge",
    }
    assert public_settings(make_settings({}))["judge"] == {"name": "lexical"}


def test_what_differs_from_the_defaults_is_kept() -> None:
    """As the settings file would have it."""
    said = {"judge": {"name": "openai", "model": "m"}, "alerts": {"remind_days": 3}, "shards": 2}
    kept = public_settings(make_settings(said))
    assert kept["judge"] == {"name": "openai", "model": "m"}
    assert kept["alerts"] == {"remind_days": 3}
    assert kept["shards"] == 2


def test_a_panel_stands_in_place_of_the_judge() -> None:
    """All its members."""
    kept = public_settings(make_settings({"judges": ["lexical", {"name": "openai", "model": "m"}]}))
    assert "judge" not in kept
    assert [judge.get("name", "lexical") for judge in kept["judges"]] == ["lexical", "openai"]


def test_no_secret_is_kept() -> None:
    """Not of a bucket, of what a retriever is sent, or of an address."""
    settings = make_settings(
        {
            "logs": "https://me:hush-1@logs.example.com/{date}.jsonl?sig=hush-2",
            "golden": "s3://user:hush-3@bucket/golden.jsonl",
            "store": "s3://bucket/store",
            "storage_options": {"key": "hush-4", "secret": {"deep": "hush-5"}},
            "retriever": {
                "url": "https://search.example.com/query",
                "headers": {"X-Tenant": "hush-6"},
                "body": {"q": "{user_input}", "auth": "hush-7"},
            },
        }
    )
    kept = public_settings(settings)
    assert "hush" not in json.dumps(kept)
    assert kept["logs"] == "https://logs.example.com/{date}.jsonl"
    assert kept["golden"] == "s3://bucket/golden.jsonl"
    assert kept["storage_options"] == {"key": HIDDEN, "secret": HIDDEN}
    assert kept["retriever"]["headers"] == {"X-Tenant": HIDDEN}


def test_the_template_of_traces_is_kept_whole() -> None:
    """Pages make links of it; its query names the trace in some tools."""
    template = "https://traces.example/find?trace={trace_id}#open"
    settings = make_settings({"logs": "logs/{date}.jsonl", "trace_url": template})
    assert public_settings(settings)["trace_url"] == template
