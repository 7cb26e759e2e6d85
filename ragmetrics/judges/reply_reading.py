"""Reads the verdict of a reply, or says why there is none."""

from __future__ import annotations

from pydantic import BaseModel

from ragmetrics.errors import UnreadableReply
from ragmetrics.judges.base import Reply
from ragmetrics.judges.client_base import UsageCounter
from ragmetrics.records import Ask
from ragmetrics.text import is_refusal, shorten


def read_verdict(request: Ask, reply: Reply) -> BaseModel:
    """The verdict of a reply. Raises UnreadableReply if there is none."""
    if reply.verdict is not None:
        return reply.verdict
    if reply.refused and (
        request.prompt.verbatim or not reply.text
    ):  # here any text would pass as a verdict
        raise UnreadableReply(f"{request.prompt.name}: {refusal_of(reply)}")
    verdict: BaseModel = request.prompt.parse(reply.text, request.data)
    return verdict


def is_refused(reply: Reply) -> bool:
    """Whether a reply without a verdict is a refusal."""
    return reply.refused or is_refusal(reply.text)


def refusal_of(reply: Reply) -> str:
    """Why a refused reply has no verdict, in the words of the judge."""
    text = shorten(reply.text)
    return f"the judge refused to answer: {text}" if text else "the judge's content filter refused"


def unreadable(request: Ask, reply: Reply, error: UnreadableReply, counter: UsageCounter) -> str:
    """Count an unreadable reply; return the reason."""
    kind = "refusal" if is_refused(reply) else "cut_off" if reply.cut_off else "unreadable"
    if reply.cut_by_reasoning:
        counter.failures["cut_by_reasoning"] += 1
        return (
            f"{request.prompt.name}: reasoning used {reply.reasoning_tokens:,} tokens and left too "
            "few for the reply; lower `judge: reasoning_effort` or raise `judge: max_tokens`"
        )
    counter.failures[kind] += 1
    return f"{error} (cut off: max_tokens)" if reply.cut_off else str(error)
