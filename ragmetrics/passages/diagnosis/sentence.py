"""What happened to the lost passages, in one sentence.

`11 of 14 lost passages are no longer retrieved by any question: probably gone from the index (all
from section payroll)`

Another sentence is on golden passages that are retrieved as before, under the same id, with another
text. They are not lost, as the id is what the golden labels name; but the labels may not hold any
more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ragmetrics.passages.diagnosis.document_ids import Ids, is_in
from ragmetrics.passages.diagnosis.lost_pairs import LostPairs
from ragmetrics.passages.diagnosis.passage_texts import passages_and_identities
from ragmetrics.passages.diagnosis.retrievals import Run
from ragmetrics.records import Stage, StageCounts, StageShare, enumerated
from ragmetrics.storage import passing_over
from ragmetrics.text import clean

_LONGEST = 60
_MOST_VALUES = 3
_MOST_OF = 0.9
"""Share of the questions of a stage that some values of a tag must cover, to be named."""
_AT_MOST = 0.5
"""Share of all questions that these values may have: more is no place."""
_WORDS: dict[Stage, str] = {
    "not_in_corpus": "are not in the corpus any more",
    "not_in_index": "are gone from the index",
    "edited": "have another text now: their source was edited",
    "rechunked": "are cut otherwise now: re-chunked",
    "renamed": "are retrieved under another id",
    "filtered": "are filtered out",
    "below_cut": "are ranked below the cut",
    "in_index": "are still in the index: ranked below the cut or filtered out",
}
_PROBABLE: dict[Stage, str] = {
    "not_in_index": "are no longer retrieved by any question: probably gone from the index"
}


def sentence_of(
    lost: LostPairs, stages: Sequence[StageShare], counts: StageCounts, hops: NDArray[np.int64]
) -> str:
    """The significant stages, the one with most passages first, and the hop that lost most; empty
    where there is none. `hops` are those of the lost pairs, 0 for a single retrieval.
    """
    told = [stage for stage in stages if stage.significant]
    told.sort(key=lambda one: -one.passages)
    total = len(lost.places)
    parts = [
        f"{_passages(share.passages, total)} {_words(lost, share.stage)}"
        f"{_where(share.stage, counts)}"
        for share in told
    ]
    hop, count = Counter(hops.tolist()).most_common(1)[0] if len(hops) else (0, 0)
    if parts and hop and 2 * count > total:
        parts.append(f"{count:,} of {total:,} were lost by hop {hop}")
    carried = len(carried_questions(lost))
    if parts and carried:
        parts.append(f"{carried:,} of the questions were not asked since")
    return "; ".join(parts)


def _passages(passages: int, total: int) -> str:
    if passages == total > 1:
        return f"{passages:,} passages"
    return f"{passages:,} of {total:,} lost passages"


def carried_questions(lost: LostPairs) -> NDArray[np.uint32]:
    """The questions of lost passages that were not asked in the newest run."""
    return np.intersect1d(lost.questions, lost.now.question[lost.now.run > 0])


def _words(lost: LostPairs, stage: Stage) -> str:
    proven = Counter(verdict.proven for verdict in lost.verdicts if verdict.stage == stage)
    if proven[True] * 2 >= proven.total():
        return _WORDS[stage]
    if words := _PROBABLE.get(stage):
        return words
    verb, _, rest = _WORDS[stage].partition(" ")
    return f"{verb} probably {rest}"


def _where(stage: Stage, counts: StageCounts) -> str:
    """` (all from section=payroll)`: the values of the tag that cover the stage best, where few
    questions have them; empty where there is no such tag.
    """
    best: tuple[float, str] = (0.0, "")
    whole = counts.stages[stage]
    for tag, values in counts.segments.items():
        hit = sorted(values, key=lambda value: (-values[value].stages.get(stage, 0), value))
        named = hit[:1]
        for value in hit[1:_MOST_VALUES]:
            if _covered(stage, counts, tag, named) < 1 and values[value].stages.get(stage):
                named.append(value)
        covered = _covered(stage, counts, tag, named)
        of = sum(values[value].of for value in named) / counts.of
        if covered >= _MOST_OF and of <= _AT_MOST and covered - of > best[0]:
            names = enumerated([clean(value, _LONGEST) for value in sorted(named)])
            much = "all" if covered == 1 else f"{covered:.0%}"
            plural = "s" if len(named) > 1 else ""
            best = covered - of, f" ({much} from {clean(tag, _LONGEST)}{plural} {names})"
    return best[1] if whole > 1 else ""


def _covered(stage: Stage, counts: StageCounts, tag: str, named: Sequence[str]) -> float:
    own = sum(counts.segments[tag][value].stages.get(stage, 0) for value in named)
    return own / counts.stages[stage]


def edited_sentence(found: LostPairs) -> str:
    """How many golden passages have another text; empty where none has."""
    pairs, now = found.pairs, found.now
    labelled = is_in(pairs.question, np.unique(now.question[now.labelled]))
    chosen = pairs.needed & pairs.retained & pairs.named & labelled
    golden = np.unique(pairs.passage[chosen])
    if not len(golden):
        return ""
    used = np.unique(pairs.run[chosen])
    before = _identities(golden, (found.earlier[number] for number in used.tolist()))
    after = _identities(golden, found.runs)
    same = np.unique(after[0][is_in(after[1], before[1])])
    both = np.intersect1d(after[0], before[0])
    edited = int((~is_in(both, same)).sum())
    if not edited:
        return ""
    return (
        f"Another text under the same id: {edited:,} of {len(golden):,} golden passages; the "
        "source was edited, or is cut otherwise"
    )


def _identities(golden: Ids, runs: Iterable[Run]) -> tuple[Ids, Ids]:
    """The golden passages that some runs retrieved, each with its id and text as one number."""
    none = np.array([], np.uint64)
    found: list[tuple[Ids, Ids]] = [(none, none)]
    for run in runs:
        with passing_over():
            for passages, identities in passages_and_identities(run):
                chosen = is_in(passages, golden)
                found.append((passages[chosen], identities[chosen]))
    passages, identities = (np.concatenate(column) for column in zip(*found, strict=True))
    return passages, identities
