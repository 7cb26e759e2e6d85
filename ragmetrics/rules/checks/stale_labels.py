"""Stale labels: distinguishes labels whose documents are gone from retrieval that got worse.

    gone    golden ids of tonight's rows that an earlier night retrieved, and no row tonight
    unseen  ids retrieved tonight that no earlier night retrieved

Both shares are compared with the same shares of the earlier nights. Ids alone cannot distinguish
stale labels from retrieval that brings other documents. So there must be evidence that retrieval is
unchanged: the texts of the gone ids are retrieved under other ids, or no metric that reads the
contexts moved. Then rules on id metrics leave out the questions whose labels name a gone id.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ragmetrics.passages import IdReader, Ids, SeenIds
from ragmetrics.records import Finding, Level, Manifest
from ragmetrics.rules.context import NightContext
from ragmetrics.rules.night_check import Limit, Sample, Tonight, check
from ragmetrics.rules.sides import ID_METRICS
from ragmetrics.stats import compare_nights

NIGHTS = 7
"""Most earlier nights that tonight's ids are compared with; at least `FEWEST_NIGHTS`."""
FEWEST_NIGHTS = 2
FEWEST_IDS = 20
SURE = 0.01
"""Significance level for a jump of a share."""
_SAMPLE = 300
"""Gone ids whose texts are searched."""
_SAME = 0.5
"""Threshold: share of an id's sentences, and of such ids, that are found under other ids."""
_STANDS = 0.1
"""A metric is unchanged where the interval of its change is within this distance of 0."""
_RULE = "the ids in labels belong to documents that exist"


@dataclass(frozen=True)
class StaleShare:
    """Tonight's share and the usual share."""

    count: int
    of: int
    usual_count: int
    usual_of: int

    @property
    def value(self) -> float:
        """Tonight's share."""
        return self.count / self.of if self.of else 0.0

    @property
    def usual(self) -> float:
        """Share of the earlier nights."""
        return self.usual_count / self.usual_of if self.usual_of else 0.0

    def jumped(self, most: float) -> bool:
        """Whether it is above the usual share by more than `most`, and significantly above it.

        One-sided test of two proportions with their pooled variance.
        """
        if self.of < FEWEST_IDS or self.usual_of < FEWEST_IDS or self.value - self.usual <= most:
            return False
        pooled = (self.count + self.usual_count) / (self.of + self.usual_of)
        error = math.sqrt(pooled * (1 - pooled) * (1 / self.of + 1 / self.usual_of))
        return not error or float(special.ndtr((self.usual - self.value) / error)) < SURE


@check(
    "stale_labels",
    stage="scores",
    order=70,
    needs=("rows", "earlier nights"),
    limit=Limit(),
    sample=Sample(
        "Labels gone stale",
        _RULE,
        "labels of 31 questions are stale: 40 of 212 golden ids retrieved on the 7 nights before "
        "are in no row (19%, before 1%), and 34% of the retrieved ids are new (before 2%)",
    ),
)
def stale_labels(tonight: Tonight) -> Iterator[Finding]:
    """The golden set names documents that were replaced in the corpus. Metrics on ids then fall
    although retrieval is not worse.

    The finding on stale labels; the night gets the questions with stale labels.

    None where no id metric was scored, or there are too few nights.
    """
    if judged := _judge(tonight.night, tonight):
        yield tonight.finding(judged[0], _RULE, judged[1], for_nights=None)


def _judge(night: NightContext, tonight: Tonight) -> tuple[Level, str] | None:
    scored = [one.metric for one in night.manifest.metrics if one.scored]
    if night.ids is None or not set(scored) & set(ID_METRICS):
        return None
    earlier, recent = _before(night, tonight.key), night.earlier[-NIGHTS:]
    once = {one.date: one for one in (*earlier, *recent)}
    seen = {day: night.ids.seen(one) for day, one in once.items()}
    base, newest = ([ids for one in side if (ids := seen[one.date])] for side in (earlier, recent))
    seen_now = night.ids.seen(night.manifest)
    if seen_now is None or min(len(base), len(newest)) < FEWEST_NIGHTS:
        return None
    (gone, gone_ids), unseen = _gone(seen_now, base), _unseen(seen_now, newest)
    lost, new = gone.jumped(tonight.limit), unseen.jumped(tonight.settings.max_unseen)
    numbers = (
        f"{gone.count:,} of {gone.of:,} golden ids retrieved on the {len(base)} nights before are "
        f"in no row ({gone.value:.0%}, before {gone.usual:.0%}), and {unseen.value:.0%} of the "
        f"retrieved ids are new (before {unseen.usual:.0%})"
    )
    if not (lost or new):
        return "ok", numbers
    why = _vouched(night, night.ids, earlier, gone_ids)
    if not why:
        text = f"{numbers}: labels are stale, or retrieval brings other documents"
        return "suspect", text
    if not lost:
        return "breach", f"labels may lack new documents: {numbers}"
    stale = night.ids.questions_of(night.manifest, gone_ids)
    night.stale.update(stale)
    text = f"labels of {len(stale):,} questions are stale: {numbers}; {why}"
    return "breach", text


def _before(night: NightContext, key: str) -> Sequence[Manifest]:
    """The nights before the current turnover of documents, or before tonight without one."""
    since = next(
        (
            finding.since
            for finding in (night.earlier[-1].findings if night.earlier else ())
            if finding.key == key and finding.state != "ok"
        ),
        None,
    )
    start = since or night.manifest.date
    return [one for one in night.earlier if one.date < start][-NIGHTS:]


def _gone(tonight: SeenIds, base: Sequence[SeenIds]) -> tuple[StaleShare, Ids]:
    """Golden ids that other nights retrieved and the night itself did not."""
    nights = _counter(base)

    def among(one: SeenIds, itself: bool) -> tuple[Ids, int]:
        there = np.isin(one.golden, one.retrieved, assume_unique=True)
        known = nights(one.golden) > (there if itself else 0)
        return one.golden[known & ~there], int(known.sum())

    gone, known = among(tonight, False)
    usual = [among(one, True) for one in base]
    count, of = sum(len(ids) for ids, _ in usual), sum(total for _, total in usual)
    return StaleShare(len(gone), known, count, of), gone


def _unseen(tonight: SeenIds, base: Sequence[SeenIds]) -> StaleShare:
    """Retrieved ids that no other night retrieved."""
    nights = _counter(base)
    return StaleShare(
        int((nights(tonight.retrieved) == 0).sum()),
        len(tonight.retrieved),
        sum(int((nights(one.retrieved) == 1).sum()) for one in base),
        sum(len(one.retrieved) for one in base),
    )


def _counter(base: Sequence[SeenIds]) -> Callable[[Ids], NDArray[np.int64]]:
    """A function that counts the nights that retrieved an id."""
    ids, counts = np.unique(np.concatenate([one.retrieved for one in base]), return_counts=True)

    def count(wanted: Ids) -> NDArray[np.int64]:
        places = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
        return np.where(ids[places] == wanted, counts[places], 0)

    return count


def _vouched(night: NightContext, ids: IdReader, base: Sequence[Manifest], gone: Ids) -> str:
    """Evidence that retrieval is unchanged, in words; empty where there is none."""
    known: dict[int, Ids] = {}
    sample = gone[:: max(1, len(gone) // _SAMPLE)]
    for earlier in reversed(base):
        left = np.array([name for name in sample if int(name) not in known], dtype=np.uint64)
        if not len(left):
            break
        known |= ids.texts_of(earlier, left)
    if texts := [pieces for pieces in known.values() if len(pieces)]:
        tonight = ids.all_pieces(night.manifest)
        found = sum(np.isin(pieces, tonight).mean() >= _SAME for pieces in texts)
        if found >= _SAME * len(texts):
            return f"{found / len(texts):.0%} of their texts are retrieved under other ids"
    stands = [name for name in _readers(night) if _stood(night, name, base)]
    if stands and len(stands) == len(_readers(night)):
        return f"{', '.join(stands)} unchanged, so retrieval is unchanged"
    return ""


def _readers(night: NightContext) -> list[str]:
    """Metrics that read the texts of the retrieved contexts and not their ids."""
    return [
        summary.metric
        for summary in night.manifest.metrics
        if summary.scored and summary.higher_is_better
        if summary.metric.startswith(("context_", "ragas_context_"))
    ]


def _stood(night: NightContext, metric: str, base: Sequence[Manifest]) -> bool:
    compared = [one for one in base if night.compares(one, metric)]
    if not compared:
        return False
    before = night.questions(metric, None, compared)
    drop = compare_nights(before, [night.scores[metric].by_question()])
    return drop is not None and drop.low > -_STANDS and drop.high < _STANDS
