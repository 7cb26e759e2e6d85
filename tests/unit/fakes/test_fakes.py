"""The stand-ins themselves, asked by the clients that the package uses."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3fs
from hypothesis import HealthCheck, settings
from openai import (
    APIConnectionError,
    AsyncOpenAI,
    AuthenticationError,
    BadRequestError,
    NotFoundError,
    OpenAI,
    RateLimitError,
)
from openai.types.chat import ChatCompletion

from ragmetrics.metrics import GRADE, GROUNDED, NEEDED, SUPPORT
from ragmetrics.metrics.bundled.context_entity_recall import ENTITIES
from ragmetrics.metrics.bundled.context_precision_with_reference import USEFUL
from ragmetrics.metrics.bundled.faithfulness import STATEMENTS
from ragmetrics.metrics.bundled.response_relevancy import QUESTIONS
from ragmetrics.records import Ask
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.in_process import LeavesProcess
from tests.fakes.logs import make_rows, write_jsonl
from tests.fakes.slack import SlackServer
from tests.fakes.verdicts import embedding

QUESTION = "What is the height of tower 7?"
ANSWER = "The height of tower 7 is 107 metres."
ASIDE = "Ferries leave every hour."
GRADE_ANSWER = Ask(GRADE, {"question": QUESTION, "context": ANSWER})
ASKS = [
    (GRADE_ANSWER, {"grade": 2}),
    (Ask(GRADE, {"question": QUESTION, "context": ASIDE}), {"grade": 0}),
    (
        Ask(NEEDED, {"question": QUESTION, "contexts": [{"1": ASIDE}, {"2": ANSWER}]}),
        {"needed": [2]},
    ),
    (
        Ask(SUPPORT, {"question": QUESTION, "contexts": [ANSWER], "sentences": [ASIDE, ANSWER]}),
        {"supported": [0, 1]},
    ),
    (
        Ask(STATEMENTS, {"question": QUESTION, "sentences": [ANSWER, "I am not sure."]}),
        {"statements": [[ANSWER], []]},
    ),
    (
        Ask(GROUNDED, {"question": QUESTION, "contexts": [ANSWER], "statements": [ANSWER, ASIDE]}),
        {"supported": [1, 0]},
    ),
    (Ask(USEFUL, {"question": QUESTION, "context": ANSWER, "answer": "107 metres"}), {"useful": 1}),
    (Ask(USEFUL, {"question": QUESTION, "context": ASIDE, "answer": "107 metres"}), {"useful": 0}),
    (
        Ask(ENTITIES, {"text": "The tower of Paris. Opened in 1889."}),
        {"entities": ["Paris", "1889"]},
    ),
]


def chat(server: JudgeServer, ask: Ask, *, retries: int = 0, schema: bool = True) -> ChatCompletion:
    """Put one request as the live judge does."""
    more: dict[str, Any] = {"response_format": _format(ask)} if schema else {}
    with OpenAI(base_url=server.base_url, max_retries=retries) as client:
        completion: ChatCompletion = client.chat.completions.create(
            model="judge",
            messages=[
                {"role": "system", "content": ask.prompt.system},
                {"role": "user", "content": ask.text},
            ],
            **more,
        )
    return completion


def content(completion: ChatCompletion) -> str:
    """The text of a reply."""
    return completion.choices[0].message.content or ""


def _format(ask: Ask) -> dict[str, Any]:
    schema = {"name": ask.prompt.name, "schema": ask.prompt.schema, "strict": True}
    return {"type": "json_schema", "json_schema": schema}


@pytest.mark.parametrize(("ask", "verdict"), ASKS)
@pytest.mark.parametrize("schema", [True, False])
def test_the_judge_gives_sensible_verdicts(
    judge_server: JudgeServer, ask: Ask, verdict: dict[str, Any], schema: bool
) -> None:
    """With a schema in the request, or only in the prompt."""
    completion = chat(judge_server, ask, schema=schema)

    assert ask.prompt.parse(content(completion), ask.data).model_dump() == verdict
    assert completion.usage is not None
    assert completion.usage.prompt_tokens > completion.usage.completion_tokens > 0


def test_the_judge_offers_distinct_questions(judge_server: JudgeServer) -> None:
    """As many as asked for, which ragmetrics' own check accepts; it sees an evasive response."""
    asked = Ask(QUESTIONS, {"response": ANSWER, "language": "en", "n": 3})
    evasive = Ask(QUESTIONS, {"response": "I do not know.", "language": "en", "n": 1})

    verdict = asked.prompt.parse(content(chat(judge_server, asked)), asked.data)
    assert len(set(verdict.questions)) == 3
    assert not verdict.noncommittal
    assert '"noncommittal": true' in content(chat(judge_server, evasive))


async def _embed(server: JudgeServer, texts: list[str]) -> list[list[float]]:
    async with AsyncOpenAI(base_url=server.base_url) as client:
        reply = await client.embeddings.create(model="embedder", input=texts)
        return [item.embedding for item in reply.data]


def test_embeddings_agree_with_the_words(judge_server: JudgeServer) -> None:
    """The SDK asks for base64; what arrives are the same unit vectors."""
    asked, near, far = asyncio.run(_embed(judge_server, [QUESTION, ANSWER, ASIDE]))

    assert np.allclose(asked, embedding(QUESTION), atol=1e-6)
    assert np.isclose(np.linalg.norm(near), 1)
    assert np.dot(asked, near) > np.dot(asked, far)
    assert judge_server.stats()["texts"] == {QUESTION: 1, ANSWER: 1, ASIDE: 1}


@pytest.mark.parametrize(
    ("behaviour", "error", "code"),
    [
        ({"api_key": "another"}, AuthenticationError, "invalid_api_key"),
        ({"models": ["gpt"]}, NotFoundError, "model_not_found"),
        ({"json_schema": False}, BadRequestError, None),
        ({"fail": {"429": 1}}, RateLimitError, "rate_limit_exceeded"),
        ({"fail": {"quota": 1}}, RateLimitError, "insufficient_quota"),
        ({"max_in_flight": 0}, RateLimitError, "rate_limit_exceeded"),
        ({"fail": {"drop": 1}}, APIConnectionError, None),
    ],
)
def test_refusals_are_those_of_the_sdk(
    judge_server: JudgeServer, behaviour: dict[str, Any], error: type[Exception], code: str | None
) -> None:
    """Status and code arrive as OpenAI sends them."""
    judge_server.faults(**behaviour)

    with pytest.raises(error) as caught:
        chat(judge_server, GRADE_ANSWER)
    assert getattr(caught.value, "code", None) == code


def test_a_429_passes_and_all_is_counted(judge_server: JudgeServer) -> None:
    """The SDK's own retry gets through; both attempts are counted under one request."""
    judge_server.faults(fail={"429": 1}, fail_attempts=1)

    chat(judge_server, GRADE_ANSWER, retries=1)

    stats = judge_server.stats()
    assert stats["requests"] == 2
    assert stats["by_status"] == {"429": 1, "200": 1}
    assert list(stats["by_hash"].values()) == [2]
    assert stats["max_in_flight"] == 1
    assert stats["headers"]["authorization"] == 2
    assert stats["last_chat"]["messages"][1]["content"] == GRADE_ANSWER.text


@pytest.mark.parametrize(
    ("behaviour", "finish", "readable"),
    [
        ({"fail": {"malformed": 1}}, "stop", False),
        ({"fail": {"truncated": 1}}, "length", False),
        ({"fail": {"prose": 1}}, "stop", True),
        ({"nonsense": True}, "stop", False),
    ],
)
def test_replies_can_be_spoilt(
    judge_server: JudgeServer, behaviour: dict[str, Any], finish: str, readable: bool
) -> None:
    """Cut, wrapped in prose, or beside the point."""
    judge_server.faults(**behaviour)

    completion = chat(judge_server, GRADE_ANSWER)

    assert completion.choices[0].finish_reason == finish
    assert ('{"grade": 2}' in content(completion)) is readable


def test_faults_repeat_themselves(judge_server: JudgeServer) -> None:
    """The same requests meet the same faults after a reset, at about the share set."""

    def failures() -> list[int]:
        judge_server.reset()
        judge_server.faults(fail={"500": 0.5})
        return [number for number in range(40) if _is_refused(judge_server, number)]

    first = failures()
    assert 10 <= len(first) <= 30
    assert failures() == first


def _is_refused(server: JudgeServer, number: int) -> bool:
    body = json.dumps({"model": "m", "input": str(number)}).encode()
    try:
        urllib.request.urlopen(f"{server.base_url}/embeddings", body).close()
    except urllib.error.HTTPError as error:
        error.close()
        return True
    return False


@pytest.mark.parametrize("behaviour", [{"fial": {}}, {"fail": {"4229": 1}}])
def test_an_unknown_fault_is_an_error(judge_server: JudgeServer, behaviour: dict[str, Any]) -> None:
    """A typing error in a test does not pass silently."""
    with pytest.raises(urllib.error.HTTPError, match="400") as caught:
        judge_server.faults(**behaviour)
    caught.value.close()


def test_s3_is_reached_through_the_environment(s3: Bucket) -> None:
    """By s3fs as by boto3."""
    s3fs.S3FileSystem().pipe_file(f"{s3.uri}/a/b.txt", b"text")

    assert s3.keys() == ["a/b.txt"]
    assert s3.client.get_object(Bucket=s3.name, Key="a/b.txt")["Body"].read() == b"text"


def test_s3_starts_empty(s3: Bucket) -> None:
    """Whatever other tests wrote."""
    assert s3.keys() == []


def test_strict_s3_refuses_a_wrong_secret(
    s3_strict: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right one passes."""
    s3fs.S3FileSystem().pipe_file(f"{s3_strict.uri}/a.txt", b"text")
    assert s3_strict.keys() == ["a.txt"]

    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(PermissionError):
        s3fs.S3FileSystem(skip_instance_cache=True).cat_file(f"{s3_strict.uri}/a.txt")


def test_slack_records_and_fails(slack_server: SlackServer) -> None:
    """What failed is received but not delivered."""
    slack_server.fail("500", times=1)

    assert os.environ["SLACK_WEBHOOK_URL"] == slack_server.url
    assert [_post(slack_server.url, {"text": text}) for text in "ab"] == [500, 200]
    assert slack_server.received == [{"text": "a"}, {"text": "b"}]
    assert slack_server.delivered == [{"text": "b"}]


def _post(url: str, message: dict[str, Any]) -> int:
    try:
        with urllib.request.urlopen(url, json.dumps(message).encode()) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_rows_are_made_to_measure(tmp_path: Path) -> None:
    """The share of rows that hold their answer is the one asked for."""
    rows = make_rows(20, good=0.75, index_build="b2", response=None)
    path = write_jsonl(tmp_path / "logs" / "a.jsonl.gz", [*rows, "not JSON"])

    assert sum(row["reference"] in row["retrieved_contexts"] for row in rows) == 15
    assert len({row["user_input"] for row in rows}) == 20
    assert rows[0]["index_build"] == "b2"
    assert "response" not in rows[0]
    assert gzip.decompress(path.read_bytes()).splitlines()[-1] == b"not JSON"


def test_no_property_fails_because_a_machine_stalls() -> None:
    """Hypothesis has no deadline here, in CI or not."""
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


@pytest.mark.process
def test_the_network_is_out_of_reach() -> None:
    """Names do not resolve, addresses are not routed, and no account of the user is seen."""
    with pytest.raises(socket.gaierror, match="offline"):
        socket.create_connection(("example.org", 80))
    with pytest.raises(OSError, match="offline"):
        socket.create_connection(("192.0.2.1", 80))
    assert "OPENAI_API_KEY" not in os.environ


def test_a_test_without_the_mark_cannot_start_a_process() -> None:
    """Nor a server: the fast lane stays fast."""
    with pytest.raises(LeavesProcess, match="subprocess"):
        subprocess.run([sys.executable, "--version"], check=True)
    with pytest.raises(LeavesProcess, match="bind"), socket.socket() as server:
        server.bind(("127.0.0.1", 0))
