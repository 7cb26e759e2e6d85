"""The stages of lost passages by the retriever, which is asked again.

    1. the question with a deeper k             beyond the cut: ranked below the cut
    2. the same without filters                 there now: filtered out
    3. the beginning of the passage itself      under another id, re-chunked, or nowhere: gone
    4. the look-up by id, where there is one    in the index, or not

Each step asks only about what the steps before left open. All share the budget `probe: requests:`;
where it is smaller than the questions, questions at equal distances are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

import numpy as np
from pydantic import JsonValue

from ragmetrics.config import RetrieverSettings, Settings
from ragmetrics.errors import RagmetricsError, StoreError
from ragmetrics.passages.diagnosis.document_ids import in_order, is_in
from ragmetrics.passages.diagnosis.log_stages import Verdict, stage_of_texts
from ragmetrics.passages.diagnosis.lost_pairs import LostPairs
from ragmetrics.passages.diagnosis.passage_texts import Holder, TextEvidence
from ragmetrics.passages.diagnosis.question_rows import rows_of_questions
from ragmetrics.passages.diagnosis.retrievals import pair_keys
from ragmetrics.passages.diagnosis.text_match import contained, shingles, shingles_of
from ragmetrics.records import LogRow, Stage, enumerated
from ragmetrics.retriever import Ask, Question, ask_retriever, look_up, question_of
from ragmetrics.text import clean

_OPEN: tuple[Stage, ...] = ("in_index", "not_in_index", "undecided")
"""Stages that the retriever can decide."""
_LONGEST_QUERY = 500
"""Characters of a passage that are asked for."""


def ask_about(
    settings: Settings, lost: LostPairs, build: str | None
) -> tuple[LostPairs, list[str], int]:
    """The lost pairs with the stages that the retriever decides, notes, and the number of requests.

    Without a retriever nothing is asked, and a note says all that is missing to decide more. A
    retriever that refuses or fails is a note too.
    """
    undecided = sum(verdict.stage == "undecided" for verdict in lost.verdicts)
    if settings.retriever is None or build is None:
        return lost, [_missing(settings, undecided, build)] if undecided else [], 0
    probe = _Probe(settings, settings.retriever, build, lost)
    try:
        probe.run()
    except StoreError:
        raise
    except RagmetricsError as error:
        probe.notes.append(clean(f"the retriever was not asked: {error}", 300))
    return replace(lost, verdicts=probe.verdicts), probe.notes, probe.requests


def _missing(settings: Settings, undecided: int, build: str | None) -> str:
    """What could decide more passages, all of it: with one part alone most stay undecided."""
    there = {
        "`corpus:` in the settings": settings.corpus,
        "`retriever:` in the settings": settings.retriever,
        "an index_build in the rows": build,
    }
    missing = enumerated([name for name, value in there.items() if not value])
    return f"Undecided lost passages: {undecided:,}. Missing to decide them: {missing}"


@dataclass
class _Probe:
    """One round of questions about lost pairs."""

    settings: Settings
    retriever: RetrieverSettings
    build: str
    lost: LostPairs
    notes: list[str] = field(default_factory=list)
    requests: int = 0
    verdicts: list[Verdict] = field(default_factory=list)
    _ends: float = 0.0
    _deep: set[int] = field(default_factory=set)
    """Questions that have an answer with a deeper k."""
    _unfiltered: set[int] = field(default_factory=set)
    """Questions that have an answer without filters."""

    def run(self) -> None:
        """Ask in steps, and settle verdicts."""
        self.verdicts = list(self.lost.verdicts)
        self._ends = monotonic() + self.retriever.probe.seconds
        deep = {"k": self.retriever.probe.deep_k} if "k" in self.retriever.parameters else {}
        free = {**deep, **self.retriever.probe.unfiltered}
        if deep:
            self._ask_questions(deep, 0.4, self._by_rank, self._deep)
        else:
            self.notes.append("questions are not asked with a deeper k, as parameters have no `k`")
        if self.retriever.probe.unfiltered:
            # What a larger k alone may bring back is not known to be filtered.
            only = self._deep if deep else None
            self._ask_questions(free, 0.6, self._by_filter, self._unfiltered, only)
        self._ask_passages(free)

    def _open(self) -> list[int]:
        """The pairs that are not settled: of passages whose texts are known."""
        return [
            number
            for number, verdict in enumerate(self.verdicts)
            if verdict.stage in _OPEN and not verdict.asked and self.lost.old[number]
        ]

    def _ask_questions(
        self,
        parameters: Mapping[str, JsonValue],
        most: float,
        settle: Callable[[int, LogRow], None],
        answered: set[int],
        only: set[int] | None = None,
    ) -> None:
        """Ask the questions of open pairs again, with at most a share of the budget so far.

        Questions with an answer are added to `answered`. With `only` no other question is asked.
        """
        by_question: dict[int, list[int]] = {}
        for number in self._open():
            question = int(self.lost.questions[number])
            if only is None or question in only:
                by_question.setdefault(question, []).append(number)
        room = int(most * self.retriever.probe.requests) - self.requests
        chosen = self._spread(list(by_question), room, "questions")
        rows = rows_of_questions(self.lost.runs, self.lost.now, chosen)
        language = self.settings.language
        asks = [Ask(question_of(rows[one].row, language), parameters) for one in chosen]
        for question, answer in zip(chosen, self._ask(asks), strict=True):
            if isinstance(answer, LogRow):
                answered.add(question)
                for number in by_question[question]:
                    settle(number, answer)

    def _by_rank(self, number: int, answer: LogRow) -> None:
        """Settle a pair by the answer with a deeper k."""
        found = find_in_answer(self._sought(number), answer, self.lost)
        k, cut = len(answer.retrieved_contexts), self.lost.cut(int(self.lost.questions[number]))
        if found.rank and found.rank > cut:
            evidence = f"asked again for {k} passages: rank {found.rank}, and {cut} are returned"
            self._settle(number, "below_cut", evidence)
        elif found.rank:
            known = self.verdicts[number]
            more = f"asked again it is at rank {found.rank}: the index or the request differs"
            self._settle(number, known.stage, f"{known.evidence}; {more}", proven=False)
        elif found.stage:
            self._settle(number, found.stage, found.evidence)

    def _by_filter(self, number: int, answer: LogRow) -> None:
        """Settle a pair by the answer without filters."""
        found = find_in_answer(self._sought(number), answer, self.lost)
        if found.rank:
            self._settle(number, "filtered", f"asked without filters: rank {found.rank}")
        elif found.stage:
            self._settle(number, found.stage, found.evidence)

    def _ask_passages(self, parameters: Mapping[str, JsonValue]) -> None:
        """Ask for the open passages themselves, each once."""
        by_passage: dict[int, list[int]] = {}
        for number in self._open():
            if self.verdicts[number].proven:  # another question retrieves it: it is in the index
                continue
            place = self.lost.places[number]
            by_passage.setdefault(int(self.lost.pairs.passage[place]), []).append(number)
        room = self.retriever.probe.requests - self.requests
        room = room // 2 if self.retriever.lookup else room
        chosen = self._spread(list(by_passage), room, "passages")
        sought = [self._sought(by_passage[one][0]) for one in chosen]
        asking = [int(self.lost.questions[by_passage[one][0]]) for one in chosen]
        rows = rows_of_questions(self.lost.runs, self.lost.now, asking)
        # With the language and the tags of a question that lost it: filters may need them.
        asks = [
            Ask(self._query(wanted, rows[question].row), parameters)
            for wanted, question in zip(sought, asking, strict=True)
        ]
        answers = self._ask(asks)
        there = self._look_up([one.id for one in sought], room)
        for passage, wanted, answer, known in zip(chosen, sought, answers, there, strict=True):
            verdict = self._by_passage(wanted, answer, known)
            for number in by_passage[passage]:
                if verdict:
                    self.verdicts[number] = self._of_question(number, verdict)

    def _by_passage(self, one: Sought, answer: LogRow | str, known: bool | str) -> Verdict | None:
        """The stage of a passage by the answer to its own text, and by the look-up of its id."""
        if isinstance(answer, LogRow):
            found = find_in_answer(one, answer, self.lost)
            if found.stage:
                return Verdict(found.stage, found.evidence, proven=True, asked=True)
            if found.rank:
                evidence = f"asked for its own text: rank {found.rank}"
                return Verdict("in_index", evidence, proven=True, asked=True)
            if known is not True:
                looked = "; the look-up does not know its id" if known is False else ""
                evidence = f"asked for its own text: not among {len(answer.retrieved_contexts)}"
                sure = known is False or "k" in self.retriever.parameters
                return Verdict("not_in_index", f"{evidence}{looked}", proven=sure, asked=True)
        if known is True:
            evidence = "the look-up knows its id"
            return Verdict("in_index", evidence, proven=True, asked=True)
        return None

    def _of_question(self, number: int, verdict: Verdict) -> Verdict:
        """The verdict on a passage for one question: ranked below the cut, where the question was
        asked without filters and the passage is in the index.
        """
        free = int(self.lost.questions[number]) in self._unfiltered
        return (
            replace(verdict, stage="below_cut") if verdict.stage == "in_index" and free else verdict
        )

    def _query(self, one: Sought, row: LogRow) -> Question:
        """The beginning of a passage as a question, with language and tags of a row."""
        asked = question_of(row, self.settings.language)
        return replace(asked, user_input=one.text[:_LONGEST_QUERY])

    def _look_up(self, ids: Sequence[str], room: int) -> list[bool | str]:
        """Whether the ids are in the index; a text where that is not asked or not known."""
        named = [one for one in ids if one]
        if self.retriever.lookup is None or not named or len(named) > room:
            return [""] * len(ids)
        self.requests += len(named)
        found = look_up(self.settings, self.build, named, seconds=self._left())
        known = dict(zip(named, found, strict=True))
        return [known.get(one, "") for one in ids]

    def _ask(self, asks: Sequence[Ask]) -> list[LogRow | str]:
        if not asks:
            return []
        answered = ask_retriever(self.settings, self.build, asks, seconds=self._left())
        self.requests += answered.requests
        failed = [row for row in answered.rows if isinstance(row, str)]
        if failed:
            note = f"{len(failed):,} of {len(asks):,} requests have no answer: {failed[0]}"
            self.notes.append(clean(note, 300))
        return answered.rows

    def _left(self) -> float:
        return max(0.0, self._ends - monotonic())

    def _spread(self, items: list[int], most: int, what: str) -> list[int]:
        """At most so many items, at equal distances."""
        if len(items) <= most:
            return items
        self.notes.append(f"asked about {max(0, most):,} of {len(items):,} {what}")
        places = np.linspace(0, len(items) - 1, max(0, most)).astype(int)
        return [items[place] for place in places]

    def _sought(self, number: int) -> Sought:
        old, place = self.lost.old[number], self.lost.places[number]
        return Sought(
            int(self.lost.pairs.passage[place]), old.id if old else "", old.text if old else ""
        )

    def _settle(self, number: int, stage: Stage, evidence: str, *, proven: bool = True) -> None:
        self.verdicts[number] = Verdict(stage, evidence, proven=proven, asked=True)


@dataclass(frozen=True)
class Sought:
    """A passage that is looked for."""

    passage: int
    """Its hash."""
    id: str
    text: str


@dataclass(frozen=True)
class FoundInAnswer:
    """Where a passage is in an answer: at a rank, or in new texts."""

    rank: int = 0
    """Rank from 1 of the passage itself; 0: it is not there."""
    stage: Stage | None = None
    """The stage that new texts show."""
    evidence: str = ""


def find_in_answer(one: Sought, answer: LogRow, lost: LostPairs) -> FoundInAnswer:
    """Where a passage is in an answer. A text that an earlier run had is no new text."""
    texts = list(answer.retrieved_contexts)
    names = list(answer.retrieved_context_ids or [""] * len(texts))
    digests = in_order(texts) if texts else np.array([], dtype=np.uint64)
    passages = in_order([n or t for n, t in zip(names, texts, strict=True)]) if texts else digests
    hits = np.flatnonzero(passages == np.uint64(one.passage))
    if len(hits):
        return FoundInAnswer(rank=int(hits[0]) + 1)
    verdict = _in_other_texts(one, names, texts, pair_keys(passages, digests), lost)
    return FoundInAnswer(stage=verdict.stage, evidence=verdict.evidence) if verdict else _NOWHERE


def _in_other_texts(
    one: Sought, names: list[str], texts: list[str], identities: np.ndarray, lost: LostPairs
) -> Verdict | None:
    wanted = shingles(one.text)
    parts = shingles_of(texts) if texts else []
    near = [place for place, own in enumerate(parts) if contained(wanted, own) > 0]
    old = is_in(identities, lost.texts_before)
    new = [place for place in near if not old[place]]
    if not new:
        return None
    holders = [
        Holder(names[place], contained(wanted, parts[place]), contained(parts[place], wanted))
        for place in new
    ]
    holders.sort(key=lambda holder: (-holder.share, holder.id))
    total = contained(wanted, np.unique(np.concatenate([parts[place] for place in new])))
    return stage_of_texts(TextEvidence(None, tuple(holders[:3]), total))


_NOWHERE = FoundInAnswer()
