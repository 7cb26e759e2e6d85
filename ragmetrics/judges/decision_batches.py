"""The questions about one row in requests, and what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

from ragmetrics.errors import JudgeError
from ragmetrics.judges.base import Reply, Tokens
from ragmetrics.judges.decision_forms import REFUSED, Answer, Decided, Worded
from ragmetrics.judges.decision_layout import Asked, compose
from ragmetrics.records import Question, dump_json, expected_level


class Piece(NamedTuple):
    """One question: that of which request, and which of its questions."""

    asked: int
    number: int


@dataclass
class Outcome:
    """What became of the questions about one row."""

    answers: dict[Piece, list[Answer | JudgeError]] = field(default_factory=dict)
    masses: dict[Piece, float] = field(default_factory=dict)
    tokens: Tokens = field(default_factory=Tokens)
    is_paid: bool = False
    """Whether a request has brought answers."""
    failures: Counter[str] = field(default_factory=Counter)

    def note(self, pieces: Sequence[Piece], answers: Sequence[Answer | JudgeError]) -> None:
        """Add the answers to some questions."""
        for piece, answer in zip(pieces, answers, strict=True):
            self.answers.setdefault(piece, []).append(answer)

    def add(self, pieces: Sequence[Piece], decided: Decided, failures: Counter[str]) -> None:
        """Add what a request brought."""
        self.is_paid = True
        self.note(pieces, decided.answers)
        self.masses.update(zip(pieces, decided.masses, strict=False))
        self.failures.update(failures)
        self.tokens = self.tokens.plus(decided.tokens)

    def reply(self, pieces: Sequence[Piece]) -> Reply | JudgeError:
        """The reply to a request by the answers to each of its questions, or the first error."""
        given = [self.answers[piece] for piece in pieces]
        for answer in chain.from_iterable(given):
            if isinstance(answer, JudgeError):
                return answer
            if answer == REFUSED:
                return Reply(refused=True)
        answers: dict[str, Any] = {"answers": [_highest(several) for several in given]}
        if masses := [round(self.masses[one], 4) for one in pieces if one in self.masses]:
            answers["label_mass"] = masses
        return Reply(dump_json(answers))


@dataclass(frozen=True)
class Batch:
    """Questions that share one request."""

    asked: Sequence[Asked]
    """All requests of the row that wait."""
    pieces: Sequence[Piece]
    contexts: Set[int]
    """The contexts of the row that are shown."""
    whole: bool = False
    """Whether all that is asked about the row is shown, whatever these questions are about."""

    @property
    def shown(self) -> Set[int]:
        """The contexts that its questions are about."""
        return self.contexts & {one for n in self._used for one in self.asked[n].contexts}

    @property
    def _used(self) -> list[int]:
        return list(dict.fromkeys(piece.asked for piece in self.pieces))

    def question(self, piece: Piece) -> Question:
        """A question."""
        return self.asked[piece.asked].questions[piece.number]

    def context_of(self, piece: Piece) -> int | None:
        """The only context that a question is about."""
        return self.asked[piece.asked].context_of(self.question(piece))

    def composed(self) -> tuple[str, list[Worded]]:
        """The state, and the questions in words."""
        shown = list(range(len(self.asked))) if self.whole else self._used
        state, labels = compose([self.asked[n] for n in shown], self.contexts)
        label_of = dict(zip(shown, labels, strict=True))
        worded = []
        for number, place in self.pieces:
            asked = self.asked[number]
            question = asked.questions[place]
            worded.append((asked.wording(label_of[number], question), question))
        return state, worded

    def halves(self) -> list[Batch]:
        """The questions in two parts."""
        half = len(self.pieces) // 2
        return [replace(self, pieces=part) for part in (self.pieces[:half], self.pieces[half:])]

    def by_context(self) -> tuple[list[Batch], list[Piece]]:
        """The questions about no context, the others by halves of the contexts, and those that need
        all contexts at once.
        """
        places = sorted(self.shown)
        half = len(places) // 2
        bare = [one for one in self.pieces if not self.asked[one.asked].contexts]
        batches = [replace(self, pieces=bare, contexts=frozenset())] if bare else []
        for part in filter(None, (set(places[:half]), set(places[half:]))):
            pieces = [one for one in self.pieces if one not in bare and self._is_about(one, part)]
            batches += [replace(self, pieces=pieces, contexts=part)] if pieces else []
        kept = {piece for batch in batches for piece in batch.pieces}
        return batches, [piece for piece in self.pieces if piece not in kept]

    @property
    def splits(self) -> bool:
        """Whether `by_context` makes it smaller."""
        bare = sum(not self.asked[one.asked].contexts for one in self.pieces)
        return len(self.shown) > 1 or 0 < bare < len(self.pieces)

    def _is_about(self, piece: Piece, contexts: Set[int]) -> bool:
        place, question = self.context_of(piece), self.question(piece)
        if place is not None:
            return place in contexts
        return question.by_part


def parts_of(asked: Sequence[Asked], most: int) -> list[list[Piece]]:
    """All questions, in parts of at most so many."""
    pieces = [Piece(n, i) for n, one in enumerate(asked) for i in range(len(one.questions))]
    return [pieces[start : start + most] for start in range(0, len(pieces), most)]


def _highest(several: Sequence[Answer | JudgeError]) -> Answer | JudgeError:
    """The answer to a question, or the highest of those that parts of the contexts gave."""
    if len(several) == 1:
        return several[0]
    strengths = [_strength(answer) for answer in several]
    unknown = (n for n, strength in enumerate(strengths) if strength is None)
    best = max(range(len(several)), key=lambda n: strengths[n] or 0.0)
    return several[next(unknown, best)]


def _strength(answer: Answer | JudgeError) -> float | None:
    """The probability of a predicate, or the expected level of a score; None for anything else."""
    if not isinstance(answer, list):
        return answer if isinstance(answer, int | float) else None
    known = [chance for chance in answer if chance is not None]
    return expected_level(tuple(known)) if len(known) == len(answer) else None
