"""Fuzz: whatever a server answers, only the project's errors are raised, and nothing odd is kept.

RAGMETRICS_FUZZ_EXAMPLES says how many examples each target tries; few by default.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings, strategies as st

from ragmetrics.config import RetrieverSettings
from ragmetrics.errors import InputError, JudgeError, UnreadableReply
from ragmetrics.http import Answer, RetryableError, error_of, retry_after
from ragmetrics.judges.base import Reply
from ragmetrics.judges.batch_files import Fault, read_outputs
from ragmetrics.judges.decision_batches import Outcome, Piece
from ragmetrics.judges.decision_forms import FORMS
from ragmetrics.judges.decision_layout import decision_prompt
from ragmetrics.judges.live import read_reply
from ragmetrics.judges.replayed import RecordedJudge
from ragmetrics.judges.reply_tables import CachedReply, read_lines
from ragmetrics.judges.responses import (
    MOST_TOKENS,
    UNREADABLE,
    error_from_response,
    read_vectors,
    used_up,
)
from ragmetrics.metrics import GRADE, NEEDED
from ragmetrics.metrics.bundled.faithfulness import STATEMENTS
from ragmetrics.metrics.bundled.response_relevancy import QUESTIONS
from ragmetrics.records import questions_of
from ragmetrics.retriever.questions import NoAnswer, Question, read_answer
from ragmetrics.text import is_refusal, json_objects

NOW = datetime(2026, 11, 19, tzinfo=UTC)
EXAMPLES = int(os.environ.get("RAGMETRICS_FUZZ_EXAMPLES", "50"))
fuzzed = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

NUMBERS = st.integers() | st.floats() | st.sampled_from([1e308, -1, 1 << 31, 1 << 63, 10**400])
TEXTS = st.text(max_size=20) | st.sampled_from(["\ud800", "\x00", "</think>", "{", "```json"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(TEXTS, inside, max_size=4),
    max_leaves=8,
)
USAGE = st.fixed_dictionaries(
    {},
    optional={
        "prompt_tokens": ANYTHING,
        "completion_tokens": ANYTHING,
        "prompt_tokens_details": ANYTHING | st.fixed_dictionaries({"cached_tokens": ANYTHING}),
    },
)
MESSAGE = st.fixed_dictionaries({}, optional={"content": ANYTHING, "refusal": ANYTHING})
CHOICE = st.fixed_dictionaries({}, optional={"message": MESSAGE, "finish_reason": ANYTHING})
CHAT = ANYTHING | st.fixed_dictionaries(
    {"choices": st.lists(CHOICE | ANYTHING, max_size=2)},
    optional={"usage": USAGE | ANYTHING, "id": ANYTHING, "created": ANYTHING, "model": ANYTHING},
)
ITEM = st.fixed_dictionaries({}, optional={"index": ANYTHING, "embedding": ANYTHING}) | ANYTHING
ERRORS = st.fixed_dictionaries(
    {}, optional={"message": ANYTHING, "code": ANYTHING, "type": ANYTHING}
)
REPLIES = st.lists(
    TEXTS
    | ANYTHING.map(lambda one: json.dumps(one))
    | st.sampled_from(["<think>", "}", '{"grade":2}']),
    max_size=6,
).map("".join)


def is_count(number: object) -> bool:
    """A number of tokens that any store takes."""
    return type(number) is int and 0 <= number <= MOST_TOKENS


@fuzzed
@given(CHAT)
def test_chat_completions(answer: Any) -> None:
    """A reply with counts that can be kept, or one of the errors that the endpoint expects."""
    try:
        reply = read_reply(answer)
    except UNREADABLE:
        return
    assert is_count(reply.prompt_tokens)
    assert is_count(reply.completion_tokens)
    assert 0 <= reply.cached_tokens <= reply.prompt_tokens
    line = CachedReply(
        "0" * 32, "p", reply.text, reply.prompt_tokens, reply.completion_tokens
    ).line(1)
    assert sum(len(table) for table in read_lines([line])) == 1


SHARES = st.floats(0, 1) | st.sampled_from([0, 1, 0.25, 0.5, 0.25, 1.004, -0.001, True, "0.5"])
THREE = st.lists(SHARES | ANYTHING, min_size=2, max_size=4) | st.sampled_from(
    [[0.2, 0.3, 0.5], [0.2, 0.3, 0.505], [0.2, 0.3, 0.6], [0, 0, 1]]
)
OF_LABELS = THREE.map(
    lambda shares: [
        {"label": str(level), "value": level, "probability": share}
        for level, share in enumerate(shares)
    ]
)
DECIDED = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["score", "predicate", "noul", "refusal", 1, None]),
        "probability": SHARES | ANYTHING,
        "noul": SHARES | ANYTHING,
        "probabilities": OF_LABELS
        | THREE.map(lambda shares: {str(level): share for level, share in enumerate(shares)})
        | ANYTHING,
    },
)
DECISION_USAGE = st.dictionaries(
    st.sampled_from(["input_tokens", "output_tokens", "input_tokens_details"]), ANYTHING
)


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1


def _sought(form: str, answer: Any) -> float | None:
    """By the documentation alone: the expected grade of an answer. None: it is no answer."""
    answer = answer if isinstance(answer, dict) else {}
    shares = answer.get("probabilities")
    if answer.get("type") == "refusal":
        return None
    if form == "decisions":
        if not isinstance(shares, list) or not all(isinstance(one, dict) for one in shares):
            return None
        if [one.get("label") for one in shares] != ["0", "1", "2"]:
            return None
        numbers = [one.get("probability") for one in shares]
    elif isinstance(shares, dict) and set(shares) == {"0", "1", "2"}:
        numbers = [shares[key] for key in ("0", "1", "2")]
    else:
        return None
    if not all(map(_is_share, numbers)) or abs(sum(numbers) - 1) > 0.01:
        return None
    return float(numbers[1] + 2 * numbers[2]) / sum(numbers)


@fuzzed
@given(
    st.sampled_from(["decisions", "systemone"]),
    DECIDED | ANYTHING,
    ANYTHING | st.none(),
    DECISION_USAGE | ANYTHING,
)
def test_decisions(form: str, answer: Any, other: Any, usage: Any) -> None:
    """The expected grade by the documentation, an unreadable reply, or an expected error."""
    of_form = [answer] if form == "decisions" else {"1": answer}
    answers = of_form if other is None else other
    (question,) = questions_of(GRADE, {})
    prompt = decision_prompt(GRADE)
    try:
        decided = FORMS[form].read([("grade", question)], {"answers": answers, "usage": usage})
    except UNREADABLE:
        return
    assert all(map(is_count, decided.tokens))
    outcome, piece = Outcome(), Piece(0, 0)
    outcome.add([piece], decided, Counter())
    reply = outcome.reply([piece])
    assert isinstance(reply, Reply)
    wanted = _sought(form, answer) if other is None else None
    if other is not None and isinstance(answers, list) and len(answers) == 1:
        wanted = _sought(form, answers[0])
    if other is not None and isinstance(answers, dict) and form == "systemone":
        wanted = _sought(form, answers.get("1"))
    try:
        grade = prompt.parse(reply.text, {"question": "q", "context": "c"})
    except UnreadableReply:
        assert wanted is None
        return
    assert wanted is not None
    assert abs(grade.level - wanted) < 1e-9


@fuzzed
@given(st.integers(1, 4), st.lists(ITEM, max_size=4) | ANYTHING, USAGE | ANYTHING)
def test_embeddings(texts: int, data: Any, usage: Any) -> None:
    """As many vectors or problems as texts, or one of the errors that the endpoint expects."""
    try:
        found = read_vectors(["text"] * texts, {"data": data, "usage": usage})
    except UNREADABLE:
        return
    assert len(found) == texts
    assert all(is_count(one.tokens) for one in found)


@fuzzed
@given(
    st.integers(100, 599).filter(lambda status: status != 200),
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "Location", "x-ratelimit-reset-tokens"]),
        TEXTS | NUMBERS.map(str) | st.datetimes().map(str),
    ),
    st.binary(max_size=50) | ERRORS.map(lambda one: json.dumps({"error": one}).encode()),
    st.booleans(),
)
def test_errors_and_headers(
    status: int, headers: dict[str, str], body: bytes, proven: bool
) -> None:
    """Each is a setback or an error of the project; waits are no negative numbers."""
    limits = {**headers, "x-ratelimit-remaining-tokens": "0"}
    assert retry_after(headers, NOW) >= 0
    assert used_up(limits) >= 0
    error_of(body)
    found = error_from_response(Answer(status, headers, body), "m", "http://x/", NOW, proven=proven)
    assert isinstance(found, RetryableError | JudgeError)


@fuzzed
@given(REPLIES)
def test_verdicts(text: str) -> None:
    """A verdict or UnreadableReply, by every kind of prompt; and a store gives the same."""
    is_refusal(text)
    data = {"question": "q", "context": "c", "contexts": ["c"], "sentences": ["s"], "n": 1}
    for prompt in (GRADE, NEEDED, QUESTIONS, STATEMENTS):
        try:
            first = prompt.parse(text, data)
        except UnreadableReply:
            continue
        assert prompt.parse(text, data) == first
    assert all(isinstance(json.loads(one), dict) for one in json_objects(text))


@fuzzed
@given(
    st.lists(
        st.binary(max_size=40)
        | CHAT.map(
            lambda body: json.dumps(
                {"custom_id": "a", "response": {"status_code": 200, "body": body}}
            ).encode()
        )
        | ANYTHING.map(lambda one: json.dumps({"custom_id": one, "error": one}).encode()),
        max_size=4,
    ).map(b"\n".join)
)
def test_batch_files(data: bytes) -> None:
    """Replies and faults by name, and no error."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "out.jsonl"
        path.write_bytes(data)
        found = read_outputs(path, 1_000)
    assert all(isinstance(one, Reply | Fault) for one in found.values())


@fuzzed
@given(
    st.lists(
        st.binary(max_size=40)
        | st.fixed_dictionaries(
            {"key": TEXTS | ANYTHING, "reply": REPLIES | ANYTHING, "as_is": ANYTHING}
        ).map(lambda one: json.dumps(one).encode()),
        max_size=3,
    ).map(b"\n".join)
)
def test_recordings(data: bytes) -> None:
    """A judge, or an InputError that names the line."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "replies.jsonl"
        path.write_bytes(data)
        try:
            judge = RecordedJudge(str(path))
        except InputError as error:
            assert "replies.jsonl" in str(error)
        else:
            assert judge.fingerprint


@fuzzed
@given(
    ANYTHING
    | st.fixed_dictionaries(
        {"retrieved_contexts": ANYTHING | st.lists(TEXTS, max_size=3)},
        optional={"retrieved_context_ids": ANYTHING, "response": ANYTHING},
    ),
    st.sampled_from([None, ".", "hits.text", "retrieved_contexts.0"]),
)
def test_retrievers(answer: Any, contexts: str | None) -> None:
    """A row, or the question has no answer."""
    chosen = RetrieverSettings(url="http://x/", contexts=contexts)
    question = Question(id="q", user_input="When?", language="en", tags={})
    try:
        row = read_answer(chosen, question, "b", answer, NOW)
    except NoAnswer as error:
        assert str(error)
    else:
        assert (row.id, row.user_input) == ("q", "When?")
