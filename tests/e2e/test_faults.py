"""An endpoint at its worst: nothing is lost, all is counted, what cannot work is said at once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import ragmetrics
from ragmetrics.config import make_settings
from ragmetrics.pipeline import Result
from tests.builders import judge_at
from tests.fakes.clients import JudgeServer
from tests.fakes.command import Run
from tests.fakes.logs import make_rows, write_jsonl

METRICS = ["context_relevance", "context_recall", "response_relevancy"]
ASIDES = [f"Bus {line} leaves the harbour every hour." for line in range(3)]


def rows(count: int) -> list[dict[str, Any]]:
    """Rows with five contexts each, of which the first is of use in four rows of five."""
    made = make_rows(count, good=0.8)
    return [row | {"retrieved_contexts": [*row["retrieved_contexts"], *ASIDES]} for row in made]


def scored(server: JudgeServer, count: int, **judge: Any) -> Result:
    """The rows, judged by a server."""
    live = judge_at(server) | judge
    return ragmetrics.evaluate(rows(count), METRICS, settings=make_settings({"judge": live}))


def failures(result: Result) -> dict[str, int]:
    """Attempts that failed, by kind."""
    return dict(result.manifest.usage.failures)


def test_no_row_is_lost_to_a_stumbling_endpoint(judge_server: JudgeServer) -> None:
    """A fifth of all attempts fails in five ways: each has its counter, and the scores are those
    of a clean run."""
    clean = scored(judge_server, 100).manifest.metrics
    judge_server.reset()
    judge_server.faults(
        fail={"429": 0.1, "500": 0.05, "drop": 0.03, "malformed": 0.03, "hang": 0.02},
        retry_after=0.2,
        latency_ms=20,
    )
    result = scored(judge_server, 100, reasks=4)
    assert [metric.status for metric in result.manifest.metrics] == [{"scored": 100}] * len(METRICS)
    assert [metric.mean for metric in result.manifest.metrics] == [one.mean for one in clean]
    counted = failures(result)
    met = judge_server.stats()["by_status"]
    for kind in ("rate_limited", "server_error", "dropped", "timeout", "unreadable"):
        assert counted[kind] > 0, kind
    assert "judge_failed" not in counted
    # Embeddings fail too, and their attempts are not among a judge's.
    assert counted["rate_limited"] <= met["429"]
    assert counted["timeout"] <= met["hang"]


def test_a_prompt_wrapped_in_prose_is_read(judge_server: JudgeServer) -> None:
    """Words and a code fence around the verdict cost nothing."""
    judge_server.faults(fail={"prose": 1})
    result = scored(judge_server, 5)
    assert [metric.scored for metric in result.manifest.metrics] == [5] * len(METRICS)
    assert failures(result) == {}


def test_a_truncated_reply_is_asked_for_again(judge_server: JudgeServer) -> None:
    """The first reply to each body ends too early: it is counted, and the next one read. A verdict
    takes four requests: with little room, with all, and twice with what was wrong.
    """
    judge_server.faults(fail={"truncated": 1}, fail_attempts=1)
    result = scored(judge_server, 5)
    assert [metric.scored for metric in result.manifest.metrics] == [5] * len(METRICS)
    asked = judge_server.stats()["by_path"]["/v1/chat/completions"]
    assert failures(result) == {"cut_off": asked * 3 / 4}


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ({"api_key": "another"}, "the judge refused the key: Incorrect API key provided."),
        ({"models": ["gpt"]}, "/v1/: The model `judge` does not"),
        ({"fail": {"quota": 1}}, "the judge's quota is used up: You exceeded your current quota"),
    ],
)
def test_a_judge_that_cannot_be_asked_ends_the_run(
    run: Run, tmp_path: Path, judge_server: JudgeServer, behaviour: dict[str, Any], message: str
) -> None:
    """One line with the endpoint's own reason, after few requests."""
    judge_server.faults(**behaviour)
    said = refused(run, tmp_path, judge_server.base_url)
    assert message in said
    assert judge_server.stats()["requests"] <= 64


@pytest.mark.parametrize("url", ["http://nowhere.invalid/v1", "http://127.0.0.1:9/v1"])
def test_an_unreachable_host_ends_the_run(run: Run, tmp_path: Path, url: str) -> None:
    """Within seconds, with the address that was tried."""
    start = time.monotonic()
    assert f"no connection to {url}/" in refused(run, tmp_path, url)
    assert time.monotonic() - start < 60  # and not `timeout_seconds`


def refused(run: Run, folder: Path, url: str) -> str:
    """What the command line says of a judge that cannot be asked."""
    log = write_jsonl(folder / "log.jsonl", rows(5))
    arguments = ["--judge", "openai", "--base-url", url, "--model", "judge", "--json"]
    ended = run("score", log, "--metrics", "context_recall", *arguments)
    assert ended.code == 2
    (said,) = (line for line in ended.err.splitlines() if line.startswith("ragmetrics: "))
    assert ended.err.strip().endswith(said)
    assert ended.out == ""
    return said
