"""What is stale in a golden set: labels, duplicate passages, questions that tell nothing.

A question tells nothing where it has the same score on every night and in every index build: it
cannot show that a build is worse or better.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.logs import GoldenRow
from ragmetrics.passages.golden.anchors import find_anchors
from ragmetrics.passages.golden.golden_file import GoldenRows
from ragmetrics.passages.golden.passage_search import PassageSearch
from ragmetrics.passages.golden.passages import Passages
from ragmetrics.records import Anchor, ConstantQuestion, DuplicatePassage, GoldenCheck, Manifest
from ragmetrics.scoring import load_scores
from ragmetrics.storage import Files, RunRef

_FEWEST_NIGHTS = 5
_FEWEST_BUILDS = 2
_EQUAL = 1e-9
_METRICS = ("id_recall", "context_recall", "hit_rate", "context_relevance")
"""The metric that shows constant questions: the first one that the nights have."""


def check_golden(
    golden: GoldenRows,
    used: Sequence[GoldenRow],
    passages: Passages,
    files: Files,
    earlier: Sequence[Manifest],
) -> tuple[GoldenCheck, PassageSearch]:
    """What is stale in the questions that are used; and the search, for new labels.

    `earlier` are the nights before, oldest first. No request is sent. Raises StoreError where the
    store is down.
    """
    anchors, search = find_anchors(used, passages, files, earlier)
    return GoldenCheck(
        passages=passages.label,
        questions=len(used),
        retired=len(golden.rows) - len(used),
        unreadable=golden.unreadable,
        problems={**golden.problems, **_without_use(golden, used)},
        anchors=anchors,
        duplicates=_duplicates(used, anchors, search),
        constant=_constant(used, files, earlier),
    ), search


def _without_use(golden: GoldenRows, used: Sequence[GoldenRow]) -> dict[str, int]:
    """Why the questions that can be read measure nothing, with their number."""
    if not used:
        return {"not in use on this night": len(golden.rows)}
    rows = [question.row for question in used]
    if any(row.reference or row.reference_contexts or row.reference_context_ids for row in rows):
        return {}
    return {"without reference, reference_contexts and reference_context_ids": len(used)}


def _duplicates(
    rows: Sequence[GoldenRow], anchors: Sequence[Anchor], search: PassageSearch
) -> list[DuplicatePassage]:
    """Labelled passages whose text is under other ids too that the question does not name."""
    labels = {row.row.id: set(row.row.reference_context_ids or ()) for row in rows}
    found: dict[str, DuplicatePassage] = {}
    for anchor in anchors:
        if anchor.status != "same" or search.text_of(anchor.context_id) is None:
            continue
        named = labels[anchor.id]
        same = [name for name in search.copies_of(anchor.context_id) if name not in named]
        if same:
            known = found.setdefault(
                anchor.context_id,
                DuplicatePassage(context_id=anchor.context_id, same_as=same, questions=[]),
            )
            known.questions.append(anchor.id)
    return list(found.values())


def _constant(
    rows: Sequence[GoldenRow], files: Files, nights: Sequence[Manifest]
) -> list[ConstantQuestion]:
    """The questions that have one score on at least five nights with two index builds."""
    metric = next(
        (name for name in _METRICS if sum(map(bool, _scored(nights, name))) >= _FEWEST_NIGHTS), None
    )
    if metric is None:
        return []
    values: dict[str, list[float]] = {}
    asked: dict[str, int] = {}
    builds: dict[str, set[str]] = {}
    for night in _scored(nights, metric):
        scores = load_scores(files, RunRef.of(night), metric)
        for key, of_question in scores.by_question().items():
            values.setdefault(key, []).extend(of_question)
            asked[key] = asked.get(key, 0) + 1
            builds.setdefault(key, set()).update(night.source.index_builds)
    return [
        ConstantQuestion(
            id=row.row.id,
            user_input=row.row.user_input,
            metric=metric,
            value=values[key][0],
            nights=asked[key],
            builds=len(builds[key]),
        )
        for row in rows
        if (key := row.row.question_key) in values
        and asked[key] >= _FEWEST_NIGHTS
        and len(builds[key]) >= _FEWEST_BUILDS
        and max(values[key]) - min(values[key]) < _EQUAL
    ]


def _scored(nights: Sequence[Manifest], metric: str) -> list[Manifest]:
    return [night for night in nights if (own := night.summary(metric)) and own.scored]
