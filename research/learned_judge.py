"""What a learned judge is worth: `python -m research learned`.

Labels stand for the verdicts of the dear judge. First the learned judge beside the embedded one on
each labelled set: models fitted on 200, 500 and 2,000 verdicts, each predicting the questions that
it has not seen. Then the rows that the dear judge has to judge for a half width of 0.02 of a
night's mean, by each way to estimate it, and how often the interval holds the truth. A night of
20,000 rows is drawn from the rows of the set with replacement, and planned and estimated as in
`active_sampling`. Where every row of a set has the same score (two of ten contexts are relevant), a
row gets a part of its contexts by chance. Last, nights that each fit the model to their own sample
alone.

The sets are those of the folder in `RAGMETRICS_DATA`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragmetrics.config import make_settings
from ragmetrics.judges import (
    Corpus,
    Features,
    LexicalJudge,
    levels_of,
    top_level,
)
from ragmetrics.people.calibration.labelled_sets import (
    LabelledSet,
    LabelTarget,
    read_sets,
    targets,
)
from ragmetrics.people.calibration.learned_fit import (
    Examples,
    fit_folds,
    quality,
)
from ragmetrics.records import (
    Figure,
    LearnedQuality,
)
from ragmetrics.scoring.sampling.prediction_powered import prediction_powered
from ragmetrics.stats.intervals import Mean
from research.active_sampling import (
    HALF_WIDTH,
    NIGHTS,
    ROWS,
    SEED,
    WAYS,
    Floats,
    Found,
    Night,
    World,
    measure,
    resampled,
)
from research.moving_world import data_folder

SETS = (
    "chunkeval_bm25",
    "hotpot_multihop",
    "nights_hotpot_subtle",
    "selqa_sentences",
    "wice_judge_replies",
    "xquad_multilingual",
)
VERDICTS = (200, 500, 2_000)
FEWEST_POSITIVE = 50
NIGHTLY = ("context_relevance", "context_recall")
TAKEN, TIMES = 0.4, 20
"""Share of a row's contexts that a row with a constant score gets, and rows made of each."""
REFITTED, REFIT_JUDGED = 500, 500
"""Nights that fit the model to their own sample, and rows that each of them judges."""
_NAMES = {
    "plain": "plain sample",
    "powered": "with the {judge} judge",
    "active": "with the {judge} judge, active",
}
"""The ways of `active_sampling` with a cheap judge, as the table names them."""


@dataclass(frozen=True)
class Labelled:
    """The items of one metric in one set, in an order that does not follow the file."""

    name: str
    top: int
    examples: Examples
    embedded: Floats
    """The level of each item by the lexical judge's verdict."""


def counted(labelled: LabelledSet) -> Corpus:
    """The word counts of a set."""
    corpus = Corpus()
    for one in labelled.rows:
        corpus.add(one.labelled.row.retrieved_contexts, one.labelled.row.user_input)
    return corpus


def gather(labelled: LabelledSet) -> Iterator[Labelled]:
    """The metrics of a set that have labels of both classes."""
    corpus = counted(labelled)
    features, judge = Features(corpus), LexicalJudge(corpus)
    for target in targets(None):
        found = _items(labelled, target, features, judge)
        if found is not None:
            yield found


def _items(
    labelled: LabelledSet, target: LabelTarget, features: Features, judge: LexicalJudge
) -> Labelled | None:
    x, levels, embedded, questions, rows, top = [], [], [], [], [], 1
    for row in labelled.rows:
        for asked in row.questions[target.metric]:
            if not asked.labels:
                continue
            top = top_level(asked.ask.prompt) or 1
            x.append(features.of(asked.ask))
            # A label between two levels counts as the lower one, as half support is no support.
            levels += [int(label * top) for label in asked.labels]
            embedded += levels_of(asked.ask, judge.verdict(asked.ask))
            # A set without questions has claims, which stand for them.
            question = asked.ask.data["question"] or " ".join(asked.ask.data["sentences"])
            questions += [question] * len(asked.labels)
            rows += [str(row.number)] * len(asked.labels)
    positive = sum(level > 0 for level in levels)
    if min(positive, len(levels) - positive) < FEWEST_POSITIVE:
        return None
    order = np.argsort([_digest(one) for one in questions], kind="stable")
    examples = Examples(np.concatenate(x), np.array(levels), np.array(questions), np.array(rows))
    return Labelled(
        f"{labelled.name} {target.metric}",
        top,
        examples.where(order),
        np.array(embedded, dtype=np.float64)[order],
    )


def _digest(text: str) -> int:
    digest = hashlib.blake2b(f"order {text}".encode(), digest_size=7).digest()
    return int.from_bytes(digest, "big")


def quality_at(labelled: Labelled, verdicts: int) -> LearnedQuality:
    """Quality of models that were each fitted on so many verdicts."""
    fitted = fit_folds(labelled.examples, labelled.top, verdicts)
    return quality(labelled.examples, fitted.chances)


@dataclass(frozen=True)
class ScoredRows:
    """Rows of a set: the dear judge's score, and that of each cheap judge."""

    dear: Floats
    cheap: dict[str, Floats]

    def world(self, judge: str) -> World:
        """Nights of these rows, drawn with replacement, with the scores of a cheap judge."""
        count = len(self.dear)
        none = np.zeros(count, dtype=int)
        return partial(resampled, Night(self.cheap[judge], self.dear, np.arange(count), none))


def scored_rows(labelled: Labelled, verdicts: int) -> ScoredRows:
    """The mean level of each row's items, by labels and by both cheap judges."""
    examples, top = labelled.examples, labelled.top
    fitted = fit_folds(examples, top, verdicts)
    place = np.unique(examples.rows, return_inverse=True)[1]

    def scored(place: NDArray[np.int_], items: NDArray[np.int_]) -> ScoredRows:
        count = np.bincount(place)
        dear, embedded, learned = (
            np.bincount(place, one[items]) / count / top
            for one in (examples.levels, labelled.embedded, fitted.chances.sum(axis=1))
        )
        return ScoredRows(dear, {"lexical": embedded, "learned": learned})

    whole = scored(place, np.arange(len(place)))
    if whole.dear.std() > 1e-9:
        return whole
    random = np.random.default_rng([SEED, 1])
    parts = [
        random.choice(own, max(1, round(TAKEN * len(own))), replace=False)
        for row in range(int(place.max()) + 1)
        for own in [np.flatnonzero(place == row)]
        for _ in range(TIMES)
    ]
    sizes = [len(one) for one in parts]
    return scored(np.repeat(np.arange(len(parts)), sizes), np.concatenate(parts))


def compare_ways(
    name: str, source: ScoredRows, draws: int, rows: int = ROWS, half_width: float = HALF_WIDTH
) -> dict[str, Found]:
    """What each way to sample needs, from `active_sampling`: with either cheap judge, and with
    active sampling on top of it.
    """
    found: dict[str, Found] = {}
    for judge, ways in (("lexical", WAYS), ("learned", WAYS[1:])):
        cells = measure(f"{name} {judge}", source.world(judge), draws, rows, half_width, ways=ways)
        found |= {_NAMES[way].format(judge=judge): cell for way, cell in cells.items()}
    return found


def simulate_refitted(
    labelled: Labelled, judged: int, draws: int, rows: int = ROWS
) -> tuple[float, float]:
    """Coverage of the learned judge's and of the plain interval where each night fits the model
    anew, on the verdicts of its own sample alone: the case in which cross-fitting matters most.
    """
    examples, top = labelled.examples, labelled.top
    names, place = np.unique(examples.rows, return_inverse=True)
    count = np.bincount(place)
    dear = np.bincount(place, examples.levels) / count / top
    random = np.random.default_rng([SEED, 2])
    held = []
    for _ in range(draws):
        night = random.integers(0, len(names), rows)
        sample = random.choice(rows, judged, replace=False)
        fitted = refit(labelled, np.isin(place, night[sample]))
        cheap = np.bincount(place, fitted) / count / top
        seen = np.full(rows, np.nan)
        seen[sample] = dear[night[sample]]
        found = prediction_powered(cheap[night], seen, np.arange(rows))
        assert found is not None
        truth = float(dear.mean())
        held.append([_holds(one, truth) for one in (found.best, found.plain)])
    best, plain = np.mean(held, axis=0).tolist()
    return best, plain


def refit(labelled: Labelled, seen: NDArray[np.bool_]) -> Floats:
    """Expected levels of all items, by models of the seen items of other folds."""
    fitted = fit_folds(labelled.examples, labelled.top, seen=seen)
    return np.asarray(fitted.chances.sum(axis=1), dtype=np.float64)


def _holds(one: Mean, truth: float) -> bool:
    return one.low is not None and one.high is not None and one.low <= truth <= one.high


def read(folder: Path, sets: Sequence[str] = SETS) -> Iterator[Labelled]:
    """The labelled items of the sets in a folder."""
    for one in _read_sets(folder, sets):
        yield from gather(one)


def _read_sets(folder: Path, sets: Sequence[str] = SETS) -> list[LabelledSet]:
    return list(read_sets(make_settings({}), [str(folder / f"{name}.jsonl") for name in sets]))


def report(draws: int = NIGHTS) -> Iterator[str]:
    """All figures, line by line."""
    sets = list(read(data_folder()))
    yield (
        "| labels as verdicts | items | verdicts | AUC | lexical | difference | within row "
        "| lexical | r of row scores | lexical | Brier | ECE |"
    )
    yield "|---" * 12 + "|"
    for one in sets:
        for verdicts in VERDICTS:
            yield _line(one, verdicts)
    yield (
        f"\n| half width {HALF_WIDTH} of {ROWS:,} rows, {draws:,} draws | way | rows judged "
        "| of plain | half width | coverage |"
    )
    yield "|---" * 6 + "|"
    nightly = [one for one in sets if one.name.endswith(NIGHTLY)]
    for one in nightly:
        found = compare_ways(one.name, scored_rows(one, VERDICTS[-1]), draws)
        yield f"| {one.name} | all rows | {ROWS:,} | | 0 | |"
        for way, cell in found.items():
            yield (
                f"| {one.name} | {way} | {cell.needed:,.0f} "
                f"| {cell.needed / found['plain sample'].needed:.2f} "
                f"| {cell.half_width:.4f} | {cell.coverage:.1%} |"
            )

    yield "\n| fitted to the sample of the night | judged | nights | coverage | plain |"
    yield "|---" * 5 + "|"
    for one in nightly:
        if scored_rows(one, VERDICTS[0]).dear.size == len(np.unique(one.examples.rows)):
            nights = min(draws, REFITTED)
            best, plain = simulate_refitted(one, REFIT_JUDGED, nights)
            yield f"| {one.name} | {REFIT_JUDGED} | {nights} | {best:.1%} | {plain:.1%} |"


def _line(one: Labelled, verdicts: int) -> str:
    found = quality_at(one, verdicts)
    cells = [
        one.name,
        f"{len(one.examples):,}",
        f"{verdicts:,}",
        _told(found.auc),
        _told(found.embedded_auc),
        _told(found.auc_gain),
        _told(found.auc_within),
        _told(found.embedded_auc_within),
        _told(found.row_correlation),
        _told(found.embedded_row_correlation),
        f"{found.brier:.3f}",
        f"{found.calibration_error or 0:.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def _told(figure: Figure) -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return "-"
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"
