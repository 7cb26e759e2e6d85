"""What probabilities are worth in place of verdicts: `python -m research probabilities`.

Judges are those that give strengths: lexical, local, and learned from 500 labels of other questions.
For each metric of each labelled set:

- AUC of strengths;
- the calibration error of strengths, and of probabilities by a fit on 60 labels, measured on all
  other questions: the mean of 20 draws of rows, as people label them, and of 20 draws of whole
  questions. `chance` is what the plain error would be for labels drawn by these very probabilities:
  the bias that the figure is given without. `left` is the error that 60 independent labels leave
  where the fit has the right form: labels drawn by the probabilities of a fit on all of them. `by
  all` is the error by all labels, each probability from a fit without the questions of its fold;
- nights of 400 questions drawn from the set: the variance of the mean of expectations, divided by
  that of the mean of verdicts (as the judge gives them today; as the likelier of both), and how often
  the 95% interval holds the mean of the set and the mean of the labels. Probabilities are by a fit
  without the questions of their fold;
- rows for a half width of 0.02;
- the variance of the mean of an active sample, divided by that of one with equal chances, where rows
  are drawn by how far the judge was from the labels in 20 bins of its score, as a night does, and
  where they are drawn by sqrt(sum p (1 - p)) / n.

The penalties of the fit were chosen on the sets marked A, by Brier score and calibration error.

The sets are those of the folder in `RAGMETRICS_DATA`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from research.active_sampling import HALF_WIDTH, SEED, Floats
from research.learned_judge import FEWEST_POSITIVE, SETS, Labelled, counted, gather
from research.moving_world import data_folder
from ragmetrics.config import make_settings
from ragmetrics.judges import Judge, LexicalJudge, levels_of
from ragmetrics.people.calibration.agreement_figures import auc_statistic, calibration_error_statistic
from ragmetrics.people.calibration.labelled_sets import LabelledSet, read_sets, targets
from ragmetrics.people.calibration.learned_fit import fit_folds
from ragmetrics.people.calibration.recalibration import fit_map
from ragmetrics.records import fold_of, probabilities
from ragmetrics.scoring.sampling.uncertainty import bins_of
from ragmetrics.scoring.sampling.inclusion import relative_probabilities
from ragmetrics.stats import mean_interval, resampled

CHOSEN_ON = ("chunkeval_bm25", "hotpot_multihop", "wice_judge_replies")
LABELS, FITS, LEARNED_FROM = 60, 20, 500
NIGHT, NIGHTS = 400, 2_000
_Z = 1.96


@dataclass(frozen=True)
class Judged:
    """The items of one metric in one set, with a judge's strengths and verdicts."""

    name: str
    judge: str
    strengths: Floats
    verdicts: Floats
    labels: Floats
    questions: np.ndarray
    rows: np.ndarray

    @property
    def fitted(self) -> Floats:
        """The probability of each item, by a fit without the questions of its fold."""
        names, place = np.unique(self.questions, return_inverse=True)
        folds = np.array([fold_of(str(name)) for name in names])[place]
        found = np.zeros(len(folds))
        for fold in np.unique(folds):
            there = folds == fold
            of_others = fit_map(self.strengths[~there], self.labels[~there])
            found[there] = probabilities(self.strengths[there], *of_others)
        return found


def read(judges: Sequence[str]) -> Iterator[Judged]:
    """All metrics of all sets by some judges."""
    for name in SETS:
        (labelled,) = read_sets(make_settings({}), [str(data_folder() / f"{name}.jsonl")])
        if "learned" in judges:
            yield from map(_learned, gather(labelled))
        for judge in _baselines(labelled, judges):
            yield from _judged(labelled, judge)


def _learned(known: Labelled) -> Judged:
    items = known.examples
    chances = fit_folds(items, known.top, LEARNED_FROM).chances
    strengths = chances.mean(axis=1)
    verdicts = (chances > 0.5).mean(axis=1)
    labels = items.levels / known.top
    return Judged(known.name, "learned", strengths, verdicts, labels, items.questions, items.rows)


def _baselines(labelled: LabelledSet, judges: Sequence[str]) -> Iterator[Judge]:
    corpus = counted(labelled)
    if "lexical" in judges:
        yield LexicalJudge(corpus)
    if "local" in judges:
        from ragmetrics.judges.local import LocalJudge

        yield LocalJudge(corpus)


def _judged(labelled: LabelledSet, judge: Judge) -> Iterator[Judged]:
    for target in targets(None):
        columns: list[tuple[float, float, float, str, str]] = []
        for row in labelled.rows:
            for asked in row.questions[target.metric]:
                strengths = judge.evidence(asked.ask) or ()
                levels = levels_of(asked.ask, judge.verdict(asked.ask))
                top = 2 if target.metric == "context_relevance" else 1
                question = asked.ask.data["question"] or " ".join(asked.ask.data["sentences"])
                for label, strength, level in zip(asked.labels, strengths, levels, strict=False):
                    known = int(label * top) / top  # half support is no support
                    columns.append((strength, level / top, known, question, str(row.number)))
        positive = sum(one[2] > 0 for one in columns)
        if min(positive, len(columns) - positive) >= FEWEST_POSITIVE:
            arrays = [np.array(side) for side in zip(*columns, strict=True)]
            name = judge.name.partition(":")[0]
            yield Judged(f"{labelled.name} {target.metric}", name, *arrays)


def errors_after(judged: Judged, units: np.ndarray, labels: int = LABELS) -> Floats:
    """Means over draws of labels, in the order of `units` (rows or questions): the calibration
    error on other questions, the plain one, and that of chance. NaN where too few are left.
    """
    random = np.random.default_rng(SEED)
    names, place = np.unique(units, return_inverse=True)
    questions = np.unique(judged.questions, return_inverse=True)[1]
    errors = []
    for _ in range(FITS):
        taken = np.argsort(random.permutation(len(names))[place], kind="stable")[:labels]
        others = ~np.isin(questions, questions[taken])
        if others.sum() < 100:
            return np.full(3, np.nan)
        p = np.array(probabilities(judged.strengths[others], *_fit(judged, taken)))
        drawn = (random.random(len(p)) < p).astype(np.float64)
        labelled = judged.labels[others]
        errors.append(
            (_error(labelled, p, questions[others]), _plain(labelled, p), _plain(drawn, p))
        )
    return np.mean(errors, axis=0)


def error_left(judged: Judged, labels: int = LABELS) -> float:
    """Mean distance of fits on so many independent labels from the probabilities that drew them."""
    random = np.random.default_rng(SEED)
    right = np.array(probabilities(judged.strengths, *fit_map(judged.strengths, judged.labels)))
    apart = []
    for _ in range(FITS):
        taken = random.choice(len(right), labels, replace=False)
        drawn = (random.random(labels) < right[taken]).astype(np.float64)
        fitted = probabilities(judged.strengths, *fit_map(judged.strengths[taken], drawn))
        apart.append(np.abs(np.array(fitted) - right).mean())
    return float(np.mean(apart))


def _fit(judged: Judged, taken: np.ndarray) -> tuple[float, float, float]:
    return fit_map(judged.strengths[taken], judged.labels[taken])


def _plain(labels: Floats, scores: Floats) -> float:
    return float(calibration_error_statistic(labels, scores)(np.ones((1, len(labels))))[0])


def _error(labels: Floats, scores: Floats, questions: np.ndarray) -> float:
    statistic = calibration_error_statistic(labels, scores)
    chance = calibration_error_statistic(labels, scores, by_chance=True)
    return resampled({"error": statistic}, questions, {"error": chance})["error"][0] or 0.0


def _auc(judged: Judged) -> float:
    statistic = auc_statistic(judged.labels > 0, judged.strengths)
    return float(statistic(np.ones((1, len(judged.labels))))[0])


def row_means(judged: Judged, values: Floats) -> Floats:
    """The mean of the items of each row."""
    place = np.unique(judged.rows, return_inverse=True)[1]
    return np.bincount(place, values) / np.bincount(place)


def nights(
    values: Floats, of_row: np.ndarray, truth: float, count: int
) -> tuple[float, float, float, float]:
    """Of nights of drawn questions: the variance of the mean, the coverage of the mean of the set
    and of the labels, and rows for a half width of 0.02.
    """
    random = np.random.default_rng(SEED)
    names, place = np.unique(of_row, return_inverse=True)
    rows_of = [np.flatnonzero(place == number) for number in range(len(names))]
    whole, means, held, true, spent = values.mean(), [], 0, 0, []
    for _ in range(count):
        chosen = random.integers(0, len(names), NIGHT)
        rows = [rows_of[number] for number in chosen]
        groups = np.repeat(np.arange(NIGHT), [len(one) for one in rows])
        found = mean_interval(values[np.concatenate(rows)], groups)
        means.append(found.mean)
        held += found.low <= whole <= found.high
        true += found.low <= truth <= found.high
        half = (found.high - found.low) / 2
        spent.append(len(groups) * (half / HALF_WIDTH) ** 2)
    return float(np.var(means)), held / count, true / count, float(np.mean(spent))


def line(judged: Judged, count: int = NIGHTS) -> str:
    """The figures of one metric of one set by one judge."""
    by_row, by_question = (errors_after(judged, one) for one in (judged.rows, judged.questions))
    fitted = judged.fitted
    of_row = judged.questions[np.unique(judged.rows, return_index=True)[1]]
    truth = float(row_means(judged, judged.labels).mean())
    figures = [
        nights(row_means(judged, values), of_row, truth, count)
        for values in (fitted, judged.verdicts, (fitted > 0.5).astype(np.float64))
    ]
    soft, hard, rounded = figures
    ratios = [_ratio(soft[0], other[0]) for other in (hard, rounded)]
    mark = "A" if judged.name.startswith(CHOSEN_ON) else "B"
    return (
        f"| {judged.name} ({mark}) | {judged.judge} | {_auc(judged):.3f} "
        f"| {_error(judged.labels, judged.strengths, judged.questions):.3f} "
        f"| {by_row[0]:.3f} | {by_question[0]:.3f} | {by_row[1]:.3f} | {by_row[2]:.3f} "
        f"| {error_left(judged):.3f} | {_error(judged.labels, fitted, judged.questions):.3f} "
        f"| {ratios[0]} | {ratios[1]} | {soft[1]:.1%} | {soft[2]:.1%} | {hard[2]:.1%} "
        f"| {hard[3]:,.0f} | {soft[3]:,.0f} | {draws(judged, fitted)} |"
    )


def draws(judged: Judged, p: Floats) -> str:
    """The variance of an active sample by bins, and by probabilities; of the rows that were known."""
    place = np.unique(judged.rows, return_inverse=True)[1]
    cheap, truth = row_means(judged, p), row_means(judged, judged.labels)
    if truth.std() < 1e-9:
        return "– | –"
    slope = max(0.0, np.cov(truth, cheap)[0, 1] / cheap.var())
    squares = np.square(truth - truth.mean() - slope * (cheap - cheap.mean()))
    bins = bins_of(cheap)
    count, sums = np.bincount(bins, minlength=20), np.bincount(bins, squares, 20)
    measured = np.sqrt((sums + 30 * squares.mean()) / (count + 30))[bins]
    spread = np.sqrt(np.bincount(place, p * (1 - p))) / np.bincount(place)
    chances = map(relative_probabilities, (measured, spread))
    return " | ".join(f"{np.mean(squares / one) / squares.mean():.2f}" for one in chances)


def _ratio(above: float, below: float) -> str:
    return f"{above / below:.2f}" if below > 1e-12 else "–"


def report(
    count: int = NIGHTS, judges: Sequence[str] = ("lexical", "learned", "local")
) -> Iterator[str]:
    """The table, line by line."""
    yield (
        "| set, metric | judge | AUC | error of strengths | after 60 labels of rows | of questions "
        "| rows, plain | chance | left | by all "
        "| variance of the mean, of verdicts | of likelier | coverage, own mean | labels' mean "
        "| verdicts: labels' mean | rows, verdicts | rows, expectations | active, by bins | by p (1 - p) |"
    )
    yield "|---" * 19 + "|"
    for judged in read(judges):
        yield line(judged, count)
