"""From a reply to its verdict: was the whole request read, what does the reply say, and what is
expected by a calibration?

Some servers cut a prompt at their context, and say nothing. They report the tokens that they have
read. Where these are far too few for the length of the request, the verdict is on a part of the
row, and is not used.

calibrations/fits/ID.json      fitted by `calibrate --fit`, named by `judge: calibration: ID`
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from ragmetrics.config import JudgeSettings
from ragmetrics.errors import JudgeError, JudgeRefused, UnreadableReply
from ragmetrics.judges.base import Judge, Reply
from ragmetrics.records import Ask, HasStrengths, Prompt, Recalibration
from ragmetrics.storage import Files, require_record
from ragmetrics.text import is_refusal, shorten

if TYPE_CHECKING:
    from ragmetrics.judges.client_base import UsageCounter

_FEWEST = 1_000
"""Reported tokens from which they are compared: no server of today reads less. Fewer may be those
that were not in its cache."""
_MOST_CHARACTERS = 8
"""Characters of a token in any text: English has four to five, with the longest tokens of any
vocabulary six."""
_STREAK, _AT_ONCE, _PATIENCE, _SKIPPED = 3, 5, 23, 4
"""Requests without a verdict from which others are sent one by one; how many are under way before;
from which some are skipped; and how many there must be more for each skipped one."""
_REPEATED = re.compile(r"(\W)\1+")  # blanks or dashes: dozens are one token


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


def find_fit(chosen: JudgeSettings, judge: Judge, files: Files) -> Recalibration | None:
    """The fit that the settings of a judge name; None if they name none.

    Raises JudgeRefused for one that is not in the store, or that is another judge's.
    """
    if chosen.calibration is None:
        return None
    fit = require_record(files, Recalibration.place(chosen.calibration), Recalibration)
    if fit is None:
        raise JudgeRefused(
            f"judge: calibration: {chosen.calibration} is not in {files.uri()}: `ragmetrics "
            "calibrate LABELLED --fit` makes one, and says its name"
        )
    if fit.judge_fingerprint != judge.fingerprint:
        raise JudgeRefused(
            f"judge: calibration: {chosen.calibration} was fitted to {fit.judge} "
            f"({fit.judge_fingerprint}), and this judge is {judge.name} ({judge.fingerprint})"
        )
    return fit


def recalibrated(fit: Recalibration, judge: Judge, request: Ask, verdict: BaseModel) -> BaseModel:
    """The expectation of a verdict by calibrated probabilities; the verdict for a prompt that the
    judge's fit does not know.
    """
    known, expect = fit.map_of(request.prompt.digest), request.prompt.expect
    if known is None or expect is None:
        return verdict
    if isinstance(verdict, HasStrengths):
        strengths: Sequence[float] | None = verdict.strengths
    else:
        strengths = judge.evidence(request)
    if strengths is None:
        return verdict
    expected: BaseModel = expect(known.distributions(strengths), request.data)
    return expected


class UnreadableStreak:
    """Requests of a prompt that has no verdict yet, whatever is asked.

    Such a prompt need not be paid for all night; but the first rows may be what the judge cannot
    read. Up to five requests are under way at a time. From the third one on that had no readable
    reply with all repetitions, none is repeated, and each waits for what the one before it shows.
    After twenty more, some are skipped: a quarter as many as there were, so a verdict is late by a
    quarter, and a prompt that never has one costs few requests more. The first verdict ends it for
    good.
    """

    def __init__(self, prompt: Prompt[Any]) -> None:
        self.news = asyncio.Event()
        """Set when a request has ended, and replaced."""
        self._name, self._text = prompt.name, ""
        self._answered = False
        self._count = 0  # requests that ended without one, and those that were skipped
        self._skipped = 0  # since the last request that was sent
        self._sent: Counter[str] = Counter()
        """Requests under way; those that share one have one key."""

    @property
    def is_long(self) -> bool:
        """Whether the judge seems to be unable to answer the prompt."""
        return not self._answered and self._count >= _STREAK

    @property
    def reason(self) -> str:
        """Why a request was skipped: one sentence for all of them."""
        return (
            f"{self._name}: not asked, as no reply to this prompt was readable so far, such as: "
            f"{shorten(self._text) or 'an empty one'}"
        )

    def is_full(self, key: str, joins: int) -> bool:
        """Whether enough requests are under way to show something, and this is none of them. Where
        `joins` of them may share one, the rows in play are held up for no verdict that is due.
        """
        most = 1 if self.is_long else max(joins, _AT_ONCE)
        return not self._answered and key not in self._sent and len(self._sent) >= most

    def readable(self) -> None:
        """The prompt has a verdict."""
        self._answered = True

    def unreadable(self, text: str) -> None:
        """A request ended without a verdict; its last reply had this text."""
        self._text = self._text if self._count else text
        self._count += 1

    @contextmanager
    def turn(self, key: str) -> Iterator[bool]:
        """Whether a request is sent; it ends with the block."""
        if self._answered:
            yield True
            return
        if self.is_long and self._skipped < max(0, self._count - _PATIENCE) // _SKIPPED:
            self._skipped += 1
            self._count += 1
            yield False
            return
        self._skipped = 0
        self._sent[key] += 1
        try:
            yield True
        finally:
            self._sent = self._sent - Counter([key])
            self.news.set()
            self.news = asyncio.Event()
