"""Whether a server has read a prompt to its end: some cut it at their context, and say nothing.

They report the tokens that they have read. Where these are far too few for the length of the
request, the verdict is on a part of the row, and is not used.
"""

from __future__ import annotations

import re

from ragmetrics.errors import JudgeError
from ragmetrics.judges.base import Reply
from ragmetrics.records import Ask

_FEWEST = 1_000
"""Reported tokens from which they are compared: no server of today reads less. Fewer may be those
that were not in its cache."""
_MOST_CHARACTERS = 8
"""Characters of a token in any text: English has four to five, with the longest tokens of any
vocabulary six."""
_REPEATED = re.compile(r"(\W)\1+")  # blanks or dashes: dozens are one token


def check_read(request: Ask, reply: Reply) -> None:
    """Raise JudgeError if the server reports far fewer tokens than the request has."""
    if cut := why_cut(request.prompt.system + request.text, reply.prompt_tokens):
        raise JudgeError(cut)


def why_cut(text: str, tokens: int) -> str:
    """Why a server that read so many tokens has not read all of a text; empty if it may have."""
    if tokens < _FEWEST or len(text) <= _MOST_CHARACTERS * tokens:
        return ""
    if len(_REPEATED.sub(r"\1", text)) <= _MOST_CHARACTERS * tokens:
        return ""
    return (
        f"too long for the judge: it read {tokens:,} tokens of a request of {len(text):,} "
        "characters, and did not say that it cut it"
    )
