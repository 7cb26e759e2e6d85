"""`fuse: row` from end to end, against a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragmetrics.config import make_settings
from ragmetrics.pipeline import run_night
from ragmetrics.records import Manifest
from tests.fakes.clients import JudgeServer
from tests.fakes.logs import NIGHT, make_rows, write_jsonl

METRICS = ["context_relevance", "context_recall", "response_relevancy"]
COUNT = 12
CHAT = "/v1/chat/completions"


def night(folder: Path, server: JudgeServer, store: str = "store", **more: Any) -> Manifest:
    """A night of twelve rows."""
    write_jsonl(folder / "logs" / f"{NIGHT}.jsonl", make_rows(COUNT, good=0.7))
    settings = {
        "logs": f"{folder}/logs/{{date}}.jsonl",
        "store": str(folder / store),
        "metrics": METRICS,
        "judge": {"name": "openai", "base_url": server.base_url, "retries": 0},
        **more,
    }
    return run_night(make_settings(settings), NIGHT).manifest


def chats(server: JudgeServer) -> int:
    """Completions that the server was asked for."""
    return int(server.stats()["by_path"][CHAT])


def means(manifest: Manifest) -> list[tuple[float, int]]:
    """What came out: the mean of each metric, and the rows behind it."""
    return [(round(one.mean or 0.0, 12), one.scored) for one in manifest.metrics]


@pytest.mark.parametrize(
    "behaviour",
    [
        {},
        {"json_schema": False},
        {"json_schema": False, "json_object": False},
        {"fail": {"prose": 1.0}},
        {"json_schema": False, "json_object": False, "fail": {"prose": 1.0}},
    ],
)
def test_one_completion_per_row(
    tmp_path: Path, judge_server: JudgeServer, behaviour: dict[str, Any]
) -> None:
    """Whatever the endpoint offers; the scores are those of single requests."""
    plain = night(tmp_path, judge_server, "plain")
    judge_server.reset()
    judge_server.faults(**behaviour)
    found = night(tmp_path, judge_server, fuse="row")
    answered = judge_server.stats()["by_status"]["200"]
    embedded = judge_server.stats()["by_path"]["/v1/embeddings"]
    assert answered - embedded == COUNT
    assert means(found) == means(plain)
    assert all(one.scored == COUNT for one in found.metrics)


def test_usage_stands_under_the_joint_name(tmp_path: Path, judge_server: JudgeServer) -> None:
    """In the manifest, and so on the dashboard: once."""
    found = night(tmp_path, judge_server, fuse="row")
    requests = {
        metric: sum(usage.requests for name, usage in of.items() if name != "embeddings")
        for metric, of in found.usage_by_metric.items()
    }
    assert {name: count for name, count in requests.items() if count} == {
        " + ".join(METRICS): COUNT
    }
    assert found.usage.completion_tokens == judge_server.stats()["completion_tokens"]


def test_fused_verdicts_are_kept_apart_and_found_again(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """A second night asks nothing; without fuse the judge is another one, and asked anew."""
    first = night(tmp_path, judge_server, fuse="row")
    asked = chats(judge_server)
    again = night(tmp_path, judge_server, fuse="row", shards=2)
    assert chats(judge_server) == asked
    assert means(again) == means(first)
    plain = night(tmp_path, judge_server)
    assert chats(judge_server) > asked
    assert plain.judge.fingerprint != first.judge.fingerprint


def test_a_row_too_long_for_the_model_is_asked_in_pieces(
    tmp_path: Path, judge_server: JudgeServer
) -> None:
    """Each of them may be short enough."""
    plain = night(tmp_path, judge_server, "plain")
    pieces = chats(judge_server)
    judge_server.reset()
    judge_server.faults(max_prompt_chars=1_500)
    found = night(tmp_path, judge_server, fuse="row")
    assert means(found) == means(plain)
    assert chats(judge_server) == COUNT + pieces
