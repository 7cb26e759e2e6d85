"""The record of the lost passages of a run: from the logs, and where asked for also from the corpus
and the retriever.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragmetrics.config import Settings
from ragmetrics.errors import StoreError
from ragmetrics.passages.diagnosis.corpus import ask_corpus
from ragmetrics.passages.diagnosis.lost_hops import hops_of
from ragmetrics.passages.diagnosis.lost_pairs import LostPairs, find_lost_pairs, sources_of
from ragmetrics.passages.diagnosis.probe import ask_about
from ragmetrics.passages.diagnosis.question_rows import QuestionRow, rows_of_questions
from ragmetrics.passages.diagnosis.retrievals import Run
from ragmetrics.passages.diagnosis.sentence import carried_questions, edited_sentence, sentence_of
from ragmetrics.passages.diagnosis.shares import (
    count_stages,
    needing_questions,
    share_of_segments,
    share_of_stages,
    tags_of_questions,
)
from ragmetrics.records import MOST_LISTED, LostPassage, LostPassages, StageCounts, StageShare
from ragmetrics.text import clean

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger(__name__)
EARLIER_NIGHTS = 7
"""Earlier nights in which a question is looked for."""
_LONGEST_TEXT = 300
_MOST_SEGMENTS = 20


def find_lost_passages(
    settings: Settings,
    run: Run,
    earlier: Sequence[Run],
    before: Sequence[StageCounts] = (),
    *,
    during: Sequence[Run] = (),
    build: str | None = None,
    ask: Callable[[LostPassages], bool] = lambda found: found.significant,
) -> LostPassages | None:
    """What happened to the passages that the questions of a run lost.

    `earlier` are the runs before, oldest first, and `before` their counts. `during` are the runs
    after these of a loss that is on: questions that were not asked since are carried on. Where
    `ask` accepts what the logs say, the corpus and the retriever of the settings are asked, the
    latter for `build`.
    None where no question with a known needed passage was asked before. No request is sent without
    `retriever:` in the settings. Raises StoreError where the store is down.
    """
    lost = find_lost_pairs(run, earlier, during)
    if lost is None:
        return None
    tags = tags_of_questions(lost.runs, lost.now, needing_questions(lost))
    by_logs = count_stages(lost, lost.by_logs, tags)
    found = _report(lost, by_logs, by_logs, before)
    known = {"significant_by_logs": found.significant, "edited": edited_sentence(lost)}
    found = found.model_copy(update=known)
    if not len(lost.places) or not ask(found):
        return found
    lost, notes = ask_corpus(settings, lost)
    lost, asked, requests = ask_about(settings, lost, build)
    counts = count_stages(lost, [verdict.stage for verdict in lost.verdicts], tags)
    found = _report(lost, counts, by_logs, before)
    return found.model_copy(update={**known, "notes": [*notes, *asked], "requests": requests})


def _unless_it_fails(find: Callable[P, T]) -> Callable[P, T | None]:
    @wraps(find)
    def found(*given: P.args, **more: P.kwargs) -> T | None:
        try:
            return find(*given, **more)
        except StoreError as error:
            log.warning("what happened to the lost passages is not known: %s", error)
        except Exception:
            log.exception("what happened to the lost passages is not known")
        return None

    return found


try_lost_passages = _unless_it_fails(find_lost_passages)
"""`find_lost_passages`; None where that fails, which is logged: a night is published in any case,
and the functions of the user's retriever may raise anything."""


def _report(
    lost: LostPairs, counts: StageCounts, by_logs: StageCounts, before: Sequence[StageCounts]
) -> LostPassages:
    sources, hops = sources_of(lost), hops_of(lost)
    passages = Counter(verdict.stage for verdict in lost.verdicts)
    shares = share_of_stages(counts, passages, before, sources)
    shares.sort(key=lambda one: (not one.significant, -one.passages, one.stage))
    segments = [
        segment
        for stage in shares
        if stage.significant
        for segment in share_of_segments(counts, before, sources, stage.stage)
        if segment.significant and segment.low > stage.share  # a value like the others is no place
    ]
    segments.sort(key=lambda one: (-one.share, -one.questions, str(one.segment)))
    return LostPassages(
        questions=len(needing_questions(lost)),
        earlier_runs=len(lost.earlier),
        needed=int(lost.pairs.needed.sum()),
        fallen=len(np.unique(lost.questions)),
        carried=len(carried_questions(lost)),
        lost=len(lost.places),
        stages=shares,
        segments=segments[:_MOST_SEGMENTS],
        hops=dict(sorted(Counter(hops[hops > 0].tolist()).items())),
        sentence=sentence_of(lost, shares, counts, hops),
        passages=_listed(lost, shares, hops),
        counts=by_logs,
    )


def _listed(
    lost: LostPairs, shares: Sequence[StageShare], hops: NDArray[np.int64]
) -> list[LostPassage]:
    """The passages to list: those of significant stages first, then in the order of the stages."""
    order = {one.stage: number for number, one in enumerate(shares)}
    chosen = sorted(
        range(len(lost.places)),
        key=lambda n: (order[lost.verdicts[n].stage], int(lost.questions[n]), n),
    )[:MOST_LISTED]
    wanted = set(lost.questions[chosen].tolist()) if chosen else set()
    questions = rows_of_questions(lost.runs, lost.now, wanted)
    return [_passage(lost, number, questions, int(hops[number])) for number in chosen]


def _passage(
    lost: LostPairs, number: int, questions: Mapping[int, QuestionRow], hop: int
) -> LostPassage:
    verdict, old, place = lost.verdicts[number], lost.old[number], lost.places[number]
    question = int(lost.pairs.question[place])
    known = questions[question]
    night: date = lost.earlier[int(lost.pairs.run[place])].ref.date
    return LostPassage(
        stage=verdict.stage,
        proven=verdict.proven,
        evidence=verdict.evidence,
        id=clean(old.id, 200) if old else "",
        text=clean(old.text, _LONGEST_TEXT) if old else "",
        user_input=clean(known.row.user_input, _LONGEST_TEXT),
        question=f"{question:08x}",
        night=night,
        rank=int(lost.pairs.rank[place]),
        hop=hop or None,
        asked=lost.runs[known.run].ref.date if known.run else None,
        shard=None if known.run else known.shard,
        position=None if known.run else known.position,
    )
