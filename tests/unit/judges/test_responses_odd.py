"""What servers say about themselves, odd and hostile, over real HTTP: it costs a row at most."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

import ragmetrics
from ragmetrics.config import JudgeSettings
from ragmetrics.errors import Unanswered
from ragmetrics.http import retry_after
from ragmetrics.judges import EmbeddingClient, JudgeClient, ReplyCache
from ragmetrics.judges.base import find_access
from ragmetrics.judges.batch_files import Fault, FaultAction, read_outputs
from ragmetrics.judges.embeddings import OpenAIEmbedder
from ragmetrics.judges.live import LiveJudge
from ragmetrics.judges.responses import tokens_of
from ragmetrics.metrics import GRADE
from ragmetrics.records import Answer, Ask
from ragmetrics.records.judging import Usage
from ragmetrics.storage import Files
from tests.fakes.logs import make_rows
from tests.fakes.odd_judge import Asked, Said, chat, odd_judge, packed, vectors
from tests.fakes.scripted import CountingEmbedder

pytestmark = pytest.mark.process

ASK = Ask(GRADE, {"question": "When was it opened?", "context": "It was opened in 1889."})


def judged(
    answer_to: Callable[[str, Asked], Said], folder: Path | None = None, **more: Any
) -> tuple[Answer, Usage, int]:
    """The answer to one request, what it came to, and how often the server was asked."""
    with odd_judge(answer_to) as (url, asked):
        chosen = JudgeSettings(name="openai", model="judge", base_url=url, **more)

        async def put() -> tuple[Answer, Usage]:
            judge = LiveJudge(find_access(chosen, url, SecretStr("testing")), chosen)
            kept = folder and ReplyCache(Files(str(folder)), "f00d", "0" * 8, "f" * 8)
            if kept:
                kept.load()
            broker = JudgeClient(judge, EmbeddingClient(CountingEmbedder()), cache=kept or None)
            try:
                return await broker.answer("00000000", ASK), broker.counters.usage()
            finally:
                await judge.close()
                if kept:
                    kept.close()

        answer, usage = asyncio.run(put())
        return answer, usage, len(asked)


USAGES = [
    '{"prompt_tokens": Infinity, "completion_tokens": -Infinity}',
    '{"prompt_tokens": 1e400, "completion_tokens": NaN}',
    '{"prompt_tokens": -5, "completion_tokens": -1}',
    '{"prompt_tokens": 1e30, "completion_tokens": 99999999999999999999}',
    '{"prompt_tokens": "12", "completion_tokens": true}',
    '{"prompt_tokens_details": [], "prompt_tokens": {}}',
    '{"prompt_tokens_details": {"cached_tokens": 1e400}}',
    '{"completion_tokens_details": {"reasoning_tokens": 1e400}}',
    '{"completion_tokens_details": "many", "total_tokens": {}}',
    "[]",
    '"none"',
    "17",
]


def test_reasoning_beside_the_completion_is_added_to_it() -> None:
    """As xAI counts; OpenAI's completion has it already."""
    details = {"completion_tokens_details": {"reasoning_tokens": 30}}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 45, **details}
    assert tokens_of({"usage": usage}) == (10, 0, 35, 30)
    usage |= {"completion_tokens": 35}
    assert tokens_of({"usage": usage}) == (10, 0, 35, 30)


@pytest.mark.parametrize("usage", USAGES)
def test_odd_usage_is_ignored_and_the_reply_kept(tmp_path: Path, usage: str) -> None:
    """The verdict is taken, its tokens are estimated, and the next run asks for nothing."""
    body = json.dumps(chat(usage="USAGE")).replace('"USAGE"', usage)
    answer, told, asked = judged(lambda path, _: Said(body), tmp_path, tokens_per_minute=1_000_000)
    assert (answer.model_dump(), asked) == ({"grade": 2}, 1)  # type: ignore[union-attr]
    assert (told.unknown_requests, told.unknown_completion_tokens) == (1, 100)
    assert 0 < told.unknown_prompt_tokens < 2_000
    answer, told, asked = judged(lambda path, _: Said(status=500), tmp_path, retries=0)
    assert (answer.model_dump(), told.answered_from_store, asked) == ({"grade": 2}, 1, 0)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "said",
    [
        "Fri, 31 Dec 99999 23:59:59 GMT",
        "Fri, 31 Dec 9999 23:59:59 -2359",
        "Mon, 01 Jan 0001 00:00:00 +2359",
        "Infinity",
        "-1e400",
        "9" * 5_000,
    ],
)
def test_a_far_retry_after_is_no_wait_and_no_error(said: str) -> None:
    """A date that no clock has is as if nothing was said."""
    assert retry_after({"retry-after": said}, datetime(2026, 11, 19, tzinfo=UTC)) >= 0


def test_a_429_with_a_far_date_is_asked_again() -> None:
    """Over HTTP: the request gets its verdict."""
    answers = iter([Said(status=429, headers={"Retry-After": "Fri, 31 Dec 99999 23:59:59 GMT"})])
    answer, told, asked = judged(lambda path, _: next(answers, Said(chat())))
    assert (answer.model_dump(), told.failures, asked) == ({"grade": 2}, {"rate_limited": 1}, 2)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "refusal",
    [
        chat("I'm sorry, but I can't help with that."),
        chat(None, message={"refusal": "No."}),
        chat("", finish_reason="content_filter"),
    ],
)
def test_a_refusal_is_a_status_of_its_own(refusal: dict[str, Any]) -> None:
    """By its words, by its own field or by the filter's word: asked again once, and no more."""
    answer, told, asked = judged(lambda path, _: Said(refusal), reasks=4)
    assert isinstance(answer, Unanswered)
    assert (answer.status, asked, told.failures) == ("refused", 2, {"refusal": 2})
    assert "refused" in answer.reason


def test_a_filter_before_the_model_is_a_refusal() -> None:
    """Azure answers 400: the request is not sent again, and the run goes on."""
    error = {"error": {"code": "content_filter", "message": "The prompt triggered our policy."}}
    answer, told, asked = judged(lambda path, _: Said(error, status=400))
    assert isinstance(answer, Unanswered)
    assert (answer.status, asked, told.failures["refusal"]) == ("refused", 1, 1)
    assert "The prompt triggered our policy." in answer.reason


def test_a_refusal_that_is_followed_by_a_verdict_costs_one_request() -> None:
    """The second answer counts."""
    answers = iter([Said(chat("I cannot assist with this."))])
    answer, told, _ = judged(lambda path, _: next(answers, Said(chat())))
    assert (answer.model_dump(), told.failures) == ({"grade": 2}, {"refusal": 1})  # type: ignore[union-attr]


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_a_packed_answer_is_read(encoding: str) -> None:
    """As honest servers send it."""
    body = packed(chat()) if encoding == "gzip" else json.dumps(chat())
    answer, _, _ = judged(lambda path, _: Said(body, headers={"Content-Encoding": encoding}))
    assert answer.model_dump() == {"grade": 2}  # type: ignore[union-attr]


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip"])
def test_an_answer_that_cannot_be_unpacked_fails_its_request(encoding: str) -> None:
    """Packed in a way that was not asked for, or damaged: told, and no other error."""
    said = Said(b"\x1f\x8b damaged", headers={"Content-Encoding": encoding})
    answer, told, _ = judged(lambda path, _: said, retries=1)
    assert isinstance(answer, Unanswered)
    assert (answer.status, told.failures["dropped"]) == ("judge_failed", 2)
    assert "the answer cannot be read" in answer.reason


def embedded(replaced: dict[str, Any], change: Callable[[str], str] = str) -> list[Any]:
    """What becomes of texts embedded together, of which some get what a test says."""

    def answer_to(path: str, asked: Asked) -> Said:
        return Said(change(json.dumps(vectors(asked["input"], replaced))))

    with odd_judge(answer_to) as (url, _):
        chosen = JudgeSettings(name="openai", model="judge", base_url=url, retries=0)

        async def put() -> list[Any]:
            embedder = OpenAIEmbedder(find_access(chosen, url, None), "e", chosen)
            try:
                asked = (embedder.embed_metered(text) for text in ("a", "b", "c"))
                return await asyncio.gather(*asked)
            finally:
                await embedder.close()

        return asyncio.run(put())


@pytest.mark.parametrize("odd", [None, "?", "AAAA", {}, [None], [[1], [2, 3]], [1e400], "é"])
def test_an_odd_vector_spoils_no_other_of_its_request(odd: Any) -> None:
    """The others are taken; that one has no vector, or none that passes the checks."""
    first, second, third = embedded({"b": odd})
    assert not (first.problem or third.problem)
    assert second.problem or not np.isfinite(second.vector).all() or second.vector.size < 3


@pytest.mark.parametrize("index", ["0", "Infinity", "1e400", "null", '"x"', "-7", "{}"])
def test_indexes_that_say_nothing_leave_the_order(index: str) -> None:
    """Some servers give every vector the same one."""

    def change(body: str) -> str:
        for place in range(3):
            body = body.replace(f'"index": {place},', f'"index": {index},')
        return body

    assert not any(one.problem for one in embedded({}, change))


def test_a_night_with_one_bad_vector_loses_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 rows 19 are scored; the run ends well."""
    monkeypatch.setenv("OPENAI_API_KEY", "testing")
    rows = [{**row, "response": f"It is {n}."} for n, row in enumerate(make_rows(20))]
    bad = str(rows[7]["user_input"])

    def answer_to(path: str, asked: Asked) -> Said:
        if path.endswith("/embeddings"):
            return Said(json.dumps(vectors(asked["input"], {bad: [float("nan")] * 3})))
        questions = {"questions": ["What?", "Which?", "Where?"], "noncommittal": False}
        return Said(chat(json.dumps(questions)))

    with odd_judge(answer_to) as (url, _):
        result = ragmetrics.evaluate(rows, ["response_relevancy"], judge="openai", base_url=url)
    (metric,) = result.manifest.metrics
    assert metric.status == {"scored": 19, "unreadable": 1}


# Batch files


def test_odd_lines_of_a_batch_answer_nothing(tmp_path: Path) -> None:
    """Each is passed over, or has its reply without the odd numbers; a filter's is a refusal."""
    good = json.dumps({"custom_id": "good", "response": {"status_code": 200, "body": chat()}})
    odd = json.dumps(
        {"custom_id": "odd", "response": {"status_code": 200, "body": chat(usage="USAGE")}}
    )
    filtered = {"custom_id": "no", "response": {"status_code": 400, "body": {}}}
    filtered["response"]["body"] = {"error": {"code": "content_filter", "message": "policy"}}  # type: ignore[index]
    lines = [good, '{"custom_id": 1e400, "response": [1]}', json.dumps(filtered), "x" * 50_000]
    lines += [odd.replace('"USAGE"', usage) for usage in USAGES]
    path = tmp_path / "out.jsonl"
    path.write_text("\n".join([*lines, good.replace("good", "last")]) + "\n")
    found = read_outputs(path, 10_000)
    assert {name for name, one in found.items() if not isinstance(one, Fault)} == {
        "good",
        "odd",
        "last",
    }
    declined = found["no"]
    assert isinstance(declined, Fault)
    assert declined.then is FaultAction.DECLINED
