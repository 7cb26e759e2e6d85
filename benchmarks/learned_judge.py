"""What a learned judge is worth: `python -m benchmarks learned`.

Labels stand for the verdicts of the dear judge. First the learned judge beside the embedded one on
each labelled set: models fitted on 200, 500 and 2,000 verdicts, each predicting the questions that
it has not seen. Then the rows that the dear judge has to judge for a half width of 0.02 of a
night's mean, by each way to estimate it, and how often the interval holds the truth. A night of
20,000 rows is drawn from the rows of the set with replacement. Where every row of a set has the
same score (two of ten contexts are relevant), a row gets a part of its contexts by chance.
Last, nights that each fit the model to their own sample alone.

The sets are those of the folder in `RAGMETRICS_DATA`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.moving_world import data_folder
from ragmetrics.calibration.labelled_sets import LabelledSet, LabelTarget, read_sets, targets
from ragmetrics.calibration.learned_fit import Examples, fit_folds, quality
from ragmetrics.config import make_settings
from ragmetrics.judges import Corpus, EmbeddedJudge, Features, levels_of, top_level
from ragmetrics.model import Figure, LearnedQuality
from ragmetrics.scoring.sampling.sample_size import FEWEST
from ragmetrics.stats import prediction_powered, rows_to_judge
from ragmetrics.stats.intervals import Mean

SETS = ("chunkeval_bm25", "hotpot_multihop", "selqa_sentences", "xquad_multilingual")
VERDICTS = (200, 500, 2_000)
FEWEST_POSITIVE = 50
NIGHTLY = ("context_relevance", "context_recall")
TAKEN, TIMES = 0.4, 20
"""Share of a row's contexts that a row with a constant score gets, and rows made of each."""
REFITTED, REFIT_JUDGED = 500, 500
"""Nights that fit the model to their own sample, and rows that each of them judges."""
ROWS, HALF_WIDTH, DRAWS, SEED = 20_000, 0.02, 2_000, 20_071
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Labelled:
    """The items of one metric in one set, in an order that does not follow the file."""

    name: str
    top: int
    examples: Examples
    embedded: Floats
    """The level of each item by the embedded judge's verdict."""


def gather(labelled: LabelledSet) -> Iterator[Labelled]:
    """The metrics of a set that have labels of both classes."""
    corpus = Corpus()
    for one in labelled.rows:
        corpus.add(one.labelled.row.retrieved_contexts, one.labelled.row.user_input)
    features, judge = Features(corpus), EmbeddedJudge(corpus)
    for target in targets(None):
        found = _items(labelled, target, features, judge)
        if found is not None:
            yield found


def _items(
    labelled: LabelledSet, target: LabelTarget, features: Features, judge: EmbeddedJudge
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
            questions += [asked.ask.data["question"]] * len(asked.labels)
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


def measure(labelled: Labelled, verdicts: int) -> LearnedQuality:
    """Quality of models that were each fitted on so many verdicts."""
    fitted = fit_folds(labelled.examples, labelled.top, verdicts)
    return quality(labelled.examples, fitted.chances)


@dataclass(frozen=True)
class Night:
    """Rows of a night: the dear judge's score, and that of each cheap judge."""

    dear: Floats
    cheap: dict[str, Floats]

    def drawn(self, rows: int, random: np.random.Generator) -> Night:
        """A night of rows drawn with replacement."""
        chosen = random.integers(0, len(self.dear), rows)
        return Night(self.dear[chosen], {name: one[chosen] for name, one in self.cheap.items()})


def scored_rows(labelled: Labelled, verdicts: int) -> Night:
    """The mean level of each row's items, by labels and by both cheap judges."""
    examples, top = labelled.examples, labelled.top
    fitted = fit_folds(examples, top, verdicts)
    place = np.unique(examples.rows, return_inverse=True)[1]

    def night(place: NDArray[np.int_], items: NDArray[np.int_]) -> Night:
        count = np.bincount(place)
        dear, embedded, learned = (
            np.bincount(place, one[items]) / count / top
            for one in (examples.levels, labelled.embedded, fitted.chances.sum(axis=1))
        )
        return Night(dear, {"embedded": embedded, "learned": learned})

    whole = night(place, np.arange(len(place)))
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
    return night(np.repeat(np.arange(len(parts)), sizes), np.concatenate(parts))


class Design(Protocol):
    """How rows are drawn for the dear judge, and how the mean follows."""

    def needed(self, dear: Floats, cheap: Floats, half_width: float, rows: int) -> int:
        """Number of rows that the dear judge has to judge in a night of `rows` rows."""
        ...

    def estimate(
        self, dear: Floats, cheap: Floats, judged: int, random: np.random.Generator
    ) -> Mean:
        """The mean of a night of which about so many rows are judged."""
        ...


class EqualChances:
    """Every row has the same chance to be judged, as in `sample:`."""

    def needed(self, dear: Floats, cheap: Floats, half_width: float, rows: int) -> int:
        """Number of rows, from spread and correlation."""
        constant = min(dear.std(), cheap.std()) < 1e-9
        correlation = 0.0 if constant else float(np.corrcoef(dear, cheap)[0, 1])
        return max(FEWEST, rows_to_judge(half_width, float(dear.std()), correlation, rows))

    def estimate(
        self, dear: Floats, cheap: Floats, judged: int, random: np.random.Generator
    ) -> Mean:
        """The prediction-powered mean; with a constant cheap score the plain one."""
        seen = np.full(len(dear), np.nan)
        sample = random.choice(len(dear), judged, replace=False)
        seen[sample] = dear[sample]
        found = prediction_powered(cheap, seen, np.arange(len(dear)))
        assert found is not None
        return found.best


@dataclass(frozen=True)
class Cell:
    """One way to estimate the mean of a night, simulated."""

    judged: int
    half_width: float
    coverage: float


WAYS: dict[str, tuple[str, Design]] = {
    "plain sample": ("none", EqualChances()),
    "with the embedded judge": ("embedded", EqualChances()),
    "with the learned judge": ("learned", EqualChances()),
}
"""The cheap judge and the design of each way."""


def simulate(
    source: Night, way: str, draws: int = DRAWS, rows: int = ROWS, half_width: float = HALF_WIDTH
) -> Cell:
    """Draw nights and samples; the truth is the mean of all rows of the set."""
    name, design = WAYS[way]
    random = np.random.default_rng([SEED, *map(ord, way)])
    none = np.zeros(len(source.dear))
    whole = Night(source.dear, {**source.cheap, "none": none})
    judged = design.needed(whole.dear, whole.cheap[name], half_width, rows)
    truth, found = float(source.dear.mean()), []
    for _ in range(draws):
        night = whole.drawn(rows, random)
        one = design.estimate(night.dear, night.cheap[name], judged, random)
        assert one.low is not None
        assert one.high is not None
        found.append(((one.high - one.low) / 2, one.low <= truth <= one.high))
    width, held = np.mean(found, axis=0).tolist()
    return Cell(judged, width, held)


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
    places = [str(folder / f"{name}.jsonl") for name in sets]
    for one in read_sets(make_settings({}), places):
        yield from gather(one)


def report(draws: int = DRAWS) -> Iterator[str]:
    """All figures, line by line."""
    sets = list(read(data_folder()))
    yield (
        "| labels as verdicts | items | verdicts | AUC | embedded | difference | within row "
        "| embedded | r | embedded | Brier | ECE |"
    )
    yield "|---" * 12 + "|"
    for one in sets:
        for verdicts in VERDICTS:
            yield _line(one, verdicts)
    yield (
        f"\n| half width {HALF_WIDTH} of {ROWS:,} rows | way | rows judged | of plain "
        "| half width | coverage |"
    )
    yield "|---" * 6 + "|"
    nightly = [one for one in sets if one.name.endswith(NIGHTLY)]
    for one in nightly:
        night = scored_rows(one, VERDICTS[-1])
        cells = {way: simulate(night, way, draws) for way in WAYS}
        yield f"| {one.name} | all rows | {ROWS:,} | | 0 | |"
        for way, cell in cells.items():
            of_plain = cell.judged / cells["plain sample"].judged
            yield (
                f"| {one.name} | {way} | {cell.judged:,} | {of_plain:.2f} "
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
    found = measure(one, verdicts)
    cells = [
        one.name,
        f"{len(one.examples):,}",
        f"{verdicts:,}",
        _told(found.auc),
        _told(found.embedded_auc),
        _told(found.auc_gain),
        _told(found.auc_within),
        _told(found.embedded_auc_within),
        f"{found.correlation or 0:.3f}",
        f"{found.embedded_correlation or 0:.3f}",
        f"{found.brier:.3f}",
        f"{found.calibration_error or 0:.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def _told(figure: Figure) -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return "-"
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]"
