"""Reads the answers of an endpoint: errors, rate-limit headers, numbers of tokens, and vectors.

A missing or impossible number of tokens counts as 0: it must not fail a reply or enter the store.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate, pairwise
from typing import Any, TypeGuard

import numpy as np

from ragmetrics.errors import Declined, JudgeError, JudgeRefused
from ragmetrics.http import Answer, RetryableError, error_of, retry_after
from ragmetrics.judges.base import Embedded, Tokens
from ragmetrics.judges.request_parameters import refused_parameter
from ragmetrics.records import Vector
from ragmetrics.text import shorten

Headers = Mapping[str, str]
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)(ms|[smhd])")
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""Errors that reading a malformed answer may raise."""
_LONGEST_HINT = 60.0
"""Most seconds that the headers of an answer may delay other requests."""
_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")
NO_VECTOR: Vector = np.empty(0, dtype=np.float32)
MOST_TOKENS = 10_000_000
"""More than any model reads or writes in one request."""


class RequestRejected(JudgeError):
    """The endpoint rejects this request; it may accept others."""

    parameter = ""
    """The parameter that it refuses by name; empty if it names none."""


class Unserved(RequestRejected):
    """The endpoint lacks the path of this request."""


class Oversized(RequestRejected):
    """The answer to this request is larger than allowed."""


def error_from_response(
    answer: Answer, model: str, address: str, now: datetime, *, proven: bool
) -> RetryableError | JudgeError:
    """The error for a status other than 200; `proven`: the endpoint has sent a usable reply."""
    error = error_of(answer.body)
    status = answer.status
    if is_filter(error):
        return Declined(f"the judge's content filter declined the request: {_words(error)}")
    body = shorten(answer.body.decode("utf-8", "replace"))
    text = shorten(error.get("message") or "") or body or f"{address} gives no reason"
    if status == 402 or (status == 429 and _is_quota(error)):
        return JudgeRefused(f"the judge's quota is used up: {text}")
    wait = retry_after(answer.headers, now)
    if status == 429:
        return RetryableError("rate_limited", f"the judge answered 429: {text}", wait=wait)
    if status == 401 or (status == 403 and not proven):
        return JudgeRefused(f"the judge refused the key: {text}")
    if 300 <= status < 400 and not proven:
        where = answer.headers.get("Location", "an unknown address")
        return JudgeRefused(f"{address} redirects to {shorten(where)}: is base_url right?")
    if status in (404, 405) and not proven:
        return JudgeRefused(
            no_model(model, f"{address}: {text}") if error else incompatible(address, status, body)
        )
    if status in (404, 408, 409) or 300 <= status < 400 or (status >= 500 and status != 501):
        return RetryableError("server_error", f"the judge answered {status}: {text}", wait=wait)
    rejected = RequestRejected(f"the judge answered {status}: {text}")
    rejected.parameter = refused_parameter(error)
    return rejected


def no_model(model: str, text: str) -> str:
    """The message for a model that the endpoint does not have."""
    return f"the judge has no model {model!r} (`judge: model:`): {text}"


def incompatible(address: str, status: int | None, message: object) -> str:
    """The message for an answer that is not of an OpenAI-compatible server."""
    answered = f"{address} answered" if status is None else f"{address} answered {status}"
    text = shorten(message).removeprefix(f"{status}: ")
    return (
        "the judge's answer is not that of an OpenAI-compatible server, is base_url right? "
        f"({answered}{f': {text}' if text else ' without a message'})"
    )


def used_up(headers: Headers) -> float:
    """Seconds until an exhausted limit of requests or tokens is filled again; else 0.

    At most a minute, because the header may be wrong. If a daily limit is exhausted, the next
    request gets an error that says so.
    """
    longest = max(
        seconds_of(headers.get(f"x-ratelimit-reset-{what}", ""))
        if headers.get(f"x-ratelimit-remaining-{what}") == "0"
        else 0.0
        for what in ("requests", "tokens")
    )
    return min(longest, _LONGEST_HINT)


def seconds_of(text: str) -> float:
    """A duration as these headers have it (`20ms`, `1s`, `6m0s`); 0 for anything else."""
    text = text.strip()
    if not re.fullmatch(rf"(?:{_DURATION.pattern}){{1,9}}", text):
        return 0.0
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))


def is_filter(error: Mapping[str, Any]) -> bool:
    """Whether an error reports a content filter, as Azure's does."""
    return error.get("code") == "content_filter" or error.get("type") == "content_filter"


def _words(error: Mapping[str, Any]) -> str:
    return shorten(error.get("message") or "no reason given")


def _is_quota(error: Mapping[str, Any]) -> bool:
    codes = [error.get("code"), error.get("type")]
    return any(isinstance(one, str) and one in _QUOTA for one in codes)


def tokens_of(payload: Any) -> Tokens:
    """The tokens under `usage` of an answer; 0 for a missing or impossible number.

    Chat completions count prompt and completion, decisions input and output.
    Some endpoints count reasoning in the total and not in the completion: it is added there.
    """
    usage = mapping(mapping(payload).get("usage"))
    prompt = count(usage.get("prompt_tokens", usage.get("input_tokens")))
    completion = count(usage.get("completion_tokens", usage.get("output_tokens")))
    parts = usage.get("prompt_tokens_details", usage.get("input_tokens_details"))
    cached = count(mapping(parts).get("cached_tokens"))
    details = mapping(usage.get("completion_tokens_details"))
    reasoning = count(details.get("reasoning_tokens"))
    if reasoning and count(usage.get("total_tokens")) == prompt + completion + reasoning:
        completion += reasoning
    return Tokens(prompt, min(cached, prompt), completion, min(reasoning, completion))


def count(value: Any) -> int:
    """A number of tokens; 0 if it is not a number, below 0 or above `MOST_TOKENS`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value <= MOST_TOKENS else 0  # false for NaN


def mapping(value: Any) -> Mapping[str, Any]:
    """A JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def read_vectors(texts: Sequence[str], answer: dict[str, Any]) -> list[Embedded]:
    """A vector for each text, or why there is none. Raises one of UNREADABLE if the vectors cannot
    be matched to the texts.
    """
    items = _in_order([mapping(item) for item in answer["data"]])
    if len(items) != len(texts):
        raise ValueError(f"{len(items)} vectors for {len(texts)} texts")
    tokens = count(mapping(answer.get("usage")).get("prompt_tokens"))
    shares = _shares(tokens, [len(text) for text in texts])
    return [_item(item, share) for item, share in zip(items, shares, strict=True)]


def _in_order(items: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The items by index; in their own order if the server sends no distinct indexes."""
    places = [item.get("index") for item in items]
    if all(place == places[0] for place in places):
        return items
    by_place = {place: item for place, item in zip(places, items, strict=True) if _whole(place)}
    if sorted(by_place) != list(range(len(items))):
        raise ValueError("the indexes of the vectors do not match the texts")
    return [by_place[place] for place in range(len(items))]


def _whole(place: Any) -> TypeGuard[int]:
    return isinstance(place, int) and not isinstance(place, bool)


def _item(item: Mapping[str, Any], tokens: int) -> Embedded:
    try:
        return Embedded(_vector(item["embedding"]), tokens=tokens)
    except UNREADABLE as error:
        problem = f"it is not a vector: {shorten(error)}"
        return Embedded(NO_VECTOR, tokens=tokens, problem=problem)


def _shares(tokens: int, lengths: Sequence[int]) -> list[int]:
    """Split tokens by the length of each text, in whole numbers with the same sum."""
    ends = [tokens * end // (sum(lengths) or 1) for end in accumulate(lengths)]
    return [end - start for start, end in pairwise([0, *ends])]


def _vector(encoded: Any) -> Vector:
    """A vector as numbers or as base64, which is requested but not supported everywhere."""
    if isinstance(encoded, str):
        return np.frombuffer(base64.b64decode(encoded), dtype="<f4")
    with np.errstate(over="ignore"):  # a number beyond float32 becomes infinite, which is rejected
        vector: Vector = np.asarray(encoded, dtype=np.float32)
    return vector
