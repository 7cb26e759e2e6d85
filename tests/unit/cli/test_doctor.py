"""`ragmetrics doctor`: what would keep a night from working, found without a message or a cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.people.calibration.canaries import canaries
from tests.builders import save_settings
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.command import Run
from tests.fakes.logs import NIGHT, make_rows, write_jsonl
from tests.fakes.slack import TOKEN, SlackServer

REMOTE = {"name": "openai", "model": "judge"}
RERANKER = {
    "name": "rerank",
    "model": "a/m",
    "base_url": "http://127.0.0.1:9/v1",
    "thresholds": [0.1, 0.2],
}
SEARCH = {"url": "http://127.0.0.1:9/query", "reranker": "m"}


def dataset(folder: Path, rows: list[dict[str, Any]] | None = None, **settings: Any) -> Path:
    """A settings file, with one night of logs."""
    write_jsonl(folder / "logs" / f"dt={NIGHT}" / "a.jsonl", rows or make_rows(12))
    return save_settings(folder, {"metrics": ["context_recall"], **settings})


def checks(run: Run, path: Path, *more: object) -> dict[str, tuple[str, str]]:
    """State and text of each check; the exit code is 1 where one failed."""
    ended = run("doctor", "--settings", path, "--date", NIGHT, "--json", *more)
    found = {one["name"]: (one["state"], one["text"]) for one in json.loads(ended.out)["checks"]}
    assert ended.code == int(any(state == "failed" for state, _ in found.values()))
    return found


def test_a_night_that_works(run: Run, tmp_path: Path, slack_server: SlackServer) -> None:
    """Every check is ok, no message is sent, and nothing stays in the store."""
    path = dataset(tmp_path)
    found = checks(run, path)
    assert {state for state, _ in found.values()} == {"ok"}
    assert list(found) == ["settings", "logs", "alert rules", "store", "judge lexical", "slack"]
    assert found["logs"][1].endswith("all of the first 12 rows can be read")
    assert not slack_server.received
    assert not [path for path in (tmp_path / "ragmetrics-store").rglob("*") if path.is_file()]
    lines = run("doctor", "--settings", path, "--date", NIGHT).out.splitlines()
    assert lines[0] == f"ok       settings: {path}: data set default, 1 metric"


def test_rules_of_wrong_settings_are_not_judged(run: Run, tmp_path: Path) -> None:
    """They would be called ok below the line that says they cannot be used."""
    rules = [{"metric": "context_recal", "min": 0.5}]
    found = checks(run, dataset(tmp_path, alerts={"rules": rules}))
    assert found["settings"][0] == "failed"
    assert "alert rules" not in found


@pytest.mark.parametrize(
    ("settings", "check", "said"),
    [
        ({"logs": "other/dt={date}/"}, "logs", "no log file at "),
        ({"golden": "golden.jsonl"}, "golden set", "golden set "),
        ({"judge": {"name": "openai"}}, "judge openai", "needs a key: set OPENAI_API_KEY"),
        ({"judge": "recorded:none.jsonl"}, "judge recorded:", "none.jsonl"),
        ({"metrics": ["context_recal"]}, "settings", "context_recal"),
        (
            {"judge": {**RERANKER, "thresholds": None}},
            "judge rerank",
            "needs the scores from which",
        ),
        (
            {"judge": RERANKER, "retriever": SEARCH, "metrics": ["context_relevance"]},
            "settings",
            "would judge itself",
        ),
    ],
)
def test_what_is_missing_is_named(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    check: str,
    said: str,
) -> None:
    """The check that fails says what it looked for; the others are made all the same."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = checks(run, dataset(tmp_path, **settings))
    (state, text) = next(one for name, one in found.items() if name.startswith(check))
    assert state == "failed"
    assert said in text
    assert len(found) >= 4


def test_logs_of_another_day_are_named(run: Run, tmp_path: Path) -> None:
    """Where the night has none yet."""
    path = dataset(tmp_path)
    ended = run("doctor", "--settings", path, "--date", "2026-11-21")
    assert f"there are logs of {NIGHT}" in ended.out
    assert ended.code == 1


def test_a_placeholder_that_is_no_date_is_a_mistake(run: Run, tmp_path: Path) -> None:
    """`dt={dat}` would find nothing, every night."""
    ended = run("doctor", "--settings", dataset(tmp_path, logs="logs/dt={dat}/"))
    assert ended.code == 2
    assert "logs: {dat}: the only placeholder is {date}" in ended.err


def test_a_metric_without_its_field_is_a_warning(run: Run, tmp_path: Path) -> None:
    """With the field; and rows that cannot be read are a failure."""
    rows = make_rows(12, reference=None)
    assert checks(run, dataset(tmp_path, rows))["logs"] == (
        "warning",
        f"1 file with 0.0 MB at {tmp_path}/logs/dt={NIGHT}; all of the first 12 rows can be read; "
        "no row has reference for context_recall",
    )
    bad = [{"frage": "Wo?", "fundstellen": ["Hier unten."]}]
    state, text = checks(run, dataset(tmp_path, bad))["logs"]
    assert state == "failed"
    assert text.endswith("columns: {user_input: frage, retrieved_contexts: fundstellen}")


def test_rows_without_a_time_are_told(run: Run, tmp_path: Path) -> None:
    """A night works without them."""
    state, text = checks(run, dataset(tmp_path, make_rows(12, timestamp=None)))["logs"]
    assert state == "ok"
    assert text.endswith(
        "can be read; no row has a time, so a log of another night may go unnoticed"
    )


def test_a_judge_is_asked_for_its_models(
    run: Run, tmp_path: Path, judge_server: JudgeServer
) -> None:
    """That costs nothing: no request reaches a model before --ask, which sends the canaries too."""
    judge = {**REMOTE, "base_url": judge_server.base_url}
    path = dataset(tmp_path, judge=judge, metrics=["context_recall", "response_relevancy"])
    found = checks(run, path)
    assert found["judge openai"][0] == "ok"
    assert "has the model judge; it was not asked" in found["judge openai"][1]
    assert "was not asked" in found["embeddings"][1]
    assert judge_server.stats()["requests"] == 0
    found = checks(run, path, "--ask")
    assert found["judge openai"][1].endswith(
        "answered with judge; 10 of 10 obvious questions right (yes to 5)"
    )
    assert "gave a vector of" in found["embeddings"][1]


def test_a_judge_at_chance_is_a_warning(
    run: Run, tmp_path: Path, judge_server: JudgeServer
) -> None:
    """It answers, and its answers mean nothing; it is asked in the language of the log."""
    judge_server.faults(grade=1)
    rows = [row | {"language": "fr"} for row in make_rows(12)]
    path = dataset(tmp_path, rows, judge={**REMOTE, "base_url": judge_server.base_url})
    state, text = checks(run, path, "--ask")["judge openai"]
    assert state == "warning"
    assert "; 5 of 10 obvious questions right (yes to 10), at least 8 are needed" in text
    asked = judge_server.stats()["last_chat"]["messages"][1]["content"]
    assert any(canary.row.user_input in asked for canary in canaries("fr"))


def test_a_judge_that_does_not_reply_to_the_canaries_is_not_called_too_weak(
    run: Run, tmp_path: Path, judge_server: JudgeServer
) -> None:
    """A slow server is a warning of its own: another model would not help."""
    judge_server.faults(good_for=1, then="500")
    path = dataset(tmp_path, judge={**REMOTE, "base_url": judge_server.base_url})
    state, text = checks(run, path, "--ask")["judge openai"]
    assert state == "warning"
    assert "; 0 of 0 obvious questions right" in text
    assert text.endswith("doctor waits 20 s, a night waits `deadline_seconds`")
    assert "another model" not in text


def test_a_layout_that_the_provider_chose_is_said(
    run: Run, tmp_path: Path, judge_server: JudgeServer
) -> None:
    """With a price of cached tokens, prompts begin with the row."""
    judge = {**REMOTE, "base_url": judge_server.base_url, "usd_per_million_cached_tokens": 0.1}
    _, text = checks(run, dataset(tmp_path, judge=judge))["judge openai"]
    assert text.endswith("; prompts begin with the row (prompt_layout)")


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ({"models": ("gpt-a", "judges")}, "has no model judge; it has judges"),
        ({"api_key": "right"}, "refuses the key in OPENAI_API_KEY"),
    ],
)
def test_a_judge_that_will_refuse_is_found(
    run: Run,
    tmp_path: Path,
    judge_server: JudgeServer,
    monkeypatch: pytest.MonkeyPatch,
    faults: Mapping[str, Any],
    said: str,
) -> None:
    """A wrong model or key; the key is in no text."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-secret")
    judge_server.faults(**faults)
    state, text = checks(
        run, dataset(tmp_path, judge={**REMOTE, "base_url": judge_server.base_url})
    )["judge openai"]
    assert state == "failed"
    assert said in text
    assert "sk-wrong-secret" not in text


def test_slack_is_asked_without_a_message(
    run: Run, tmp_path: Path, slack_server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A webhook by an empty message, which Slack refuses; a bot by its token."""
    path = dataset(tmp_path, alerts={"slack_channel": "#alerts"})
    assert checks(run, path)["slack"] == (
        "ok",
        "Slack knows the webhook; no message was sent",
    )
    monkeypatch.setenv("SLACK_API_URL", slack_server.api)
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    assert "valid for team Towers" in checks(run, path)["slack"][1]
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-wrong")
    state, text = checks(run, path)["slack"]
    assert (state, "invalid_auth" in text, "xoxb" in text) == ("failed", True, False)
    assert not slack_server.received
    monkeypatch.delenv("SLACK_BOT_TOKEN")
    monkeypatch.delenv("SLACK_WEBHOOK_URL")
    assert checks(run, path)["slack"][0] == "warning"


def test_a_store_that_cannot_be_written_fails(run: Run, tmp_path: Path, s3: Bucket) -> None:
    """A bucket is written to and left as it was; one that is not there fails."""
    found = checks(run, dataset(tmp_path, store=f"{s3.uri}/store"))
    assert found["store"][0] == "warning"
    assert "without dashboard_url" in found["store"][1]
    found = checks(run, dataset(tmp_path, store="s3://nowhere/store"))
    assert found["store"][0] == "failed"
    assert "no such bucket" in found["store"][1]
