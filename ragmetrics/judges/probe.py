"""Asks the endpoint of a judge whether it will answer: for free, or for the price of one token."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from ragmetrics.config import JudgeSettings, api_key
from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.judges.base import Access, find_access
from ragmetrics.judges.batch_api import make_client
from ragmetrics.judges.factory import make_judge
from ragmetrics.judges.request_parameters import RequestParameters, refused_parameter
from ragmetrics.judges.responses import mapping, tokens_of
from ragmetrics.records import Ask
from ragmetrics.text import clean

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_SECONDS = 20.0
_MOST_SHOWN = 300


async def probe_judge(judge: JudgeSettings, *, ask: bool) -> str:
    """Ask the endpoint of a judge whether it answers, and say what was found.

    Raises JudgeRefused for a wrong key or model, JudgeError where it does not answer.
    """
    return await (judge.kind.probe or _probe_by_request)(judge, ask=ask)


async def probe_chat(judge: JudgeSettings, *, ask: bool) -> str:
    """Ask for the list of models, which costs nothing, or with `ask` for a reply of one token.

    Returns what was found. Raises JudgeRefused for a wrong key or model, JudgeError where the
    endpoint does not answer.
    """
    access = find_access(judge, judge.base_url, api_key(judge.api_key_env, os.environ))
    client = make_client(access, judge)
    try:
        with _translated_errors(judge, access):
            async with asyncio.timeout(_SECONDS):
                brief = client.with_options(max_retries=1, timeout=2 * _SECONDS)
                if ask:
                    return await _one_token(brief, access, judge)
                return await _find_model(brief, access, judge.model)
    finally:
        await client.close()


async def _probe_by_request(judge: JudgeSettings, *, ask: bool) -> str:
    """Make the judge, and with `ask` request the grade of one context: an endpoint without a list
    of models shows nothing else.
    """
    from ragmetrics.metrics import GRADE

    brief = {"retries": 0, "deadline_seconds": _SECONDS}
    asked = make_judge(judge.model_copy(update=brief))
    place = judge.base_url or judge.name
    try:
        if not ask:
            return f"{place} was not asked (--ask) for a grade by {judge.model}"
        await asked.reply(Ask(GRADE, {"question": "word", "context": "word"}), 0)
    finally:
        await asked.close()
    return f"{place} gave a grade by {judge.model}"


async def _one_token(client: AsyncOpenAI, access: Access, judge: JudgeSettings) -> str:
    """Ask as the judge does, without what the endpoint refuses by name. A model that reasons needs
    more than one token to say OK, so it gets the limit of the settings.
    """
    from openai import BadRequestError

    known = RequestParameters(judge)
    while True:
        limit = judge.max_tokens if known.changes else 1
        sent = known.sent
        try:
            answer = await client.chat.completions.create(
                model=judge.model,
                messages=[{"role": "user", "content": "Reply with OK."}],
                extra_body=known.fit({"max_tokens": limit, "temperature": judge.temperature}),
            )
        except BadRequestError as error:
            body = mapping(error.body)
            if not known.turn(refused_parameter(body), sent, str(body.get("message"))):
                raise
        else:
            reasoned = _reasoning_of(answer)
            told = ", ".join(filter(None, (known.changes, reasoned)))
            return f"{access.address} answered with {judge.model}{f' ({told})' if told else ''}"


def _reasoning_of(answer: Any) -> str:
    """`64 tokens of reasoning`; empty if the model did not reason, or does not say so."""
    usage = answer.usage.model_dump() if getattr(answer, "usage", None) else {}
    reasoning = tokens_of({"usage": usage}).reasoning
    return f"{reasoning:,} tokens of reasoning" if reasoning else ""


async def _find_model(client: AsyncOpenAI, access: Access, model: str) -> str:
    from openai import NotFoundError, PermissionDeniedError

    try:
        names = [one.id for one in (await client.models.list()).data]
    except (NotFoundError, PermissionDeniedError):
        return f"{access.address} answers, and lists no models: --ask tries {model}"
    if model in names:
        return f"{access.address} has the model {model}; it was not asked (--ask)"
    near = get_close_matches(model, names, n=3) or names[:3]
    raise JudgeRefused(f"{access.address} has no model {model}; it has {', '.join(near) or 'none'}")


@contextmanager
def _translated_errors(judge: JudgeSettings, access: Access) -> Iterator[None]:
    """Turn errors of the SDK into ours. No error text contains the key."""
    from openai import APIConnectionError, APIStatusError, AuthenticationError, OpenAIError

    try:
        yield
    except TimeoutError:
        raise JudgeError(
            f"{access.address} did not answer within {_SECONDS:g} s; where a server loads its "
            "model first, try again"
        ) from None
    except AuthenticationError as error:
        raise JudgeRefused(
            f"{access.address} refuses the key in {judge.api_key_env}: {_said(error, access)}"
        ) from None
    except APIConnectionError as error:
        reason = error.__cause__ or error
        raise JudgeError(f"{access.address} cannot be reached: {_said(reason, access)}") from None
    except APIStatusError as error:
        raise JudgeError(
            f"{access.address} answered {error.status_code}: {_said(error, access)}"
        ) from None
    except OpenAIError as error:
        raise JudgeError(f"{access.address}: {_said(error, access)}") from None


def _said(error: BaseException, access: Access) -> str:
    return clean(str(error).replace(access.key, "***"), _MOST_SHOWN)
