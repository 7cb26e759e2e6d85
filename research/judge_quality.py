"""How well the lexical judge agrees with labelled sets: `python -m research.judge_quality SETS`.

Every constant is chosen anew for each set from the other sets alone, and the figures that those
constants give on the set left out stand beside those of the constants in use. What is chosen, and
by what, from the other sets with equal say:

    part, power, doubt         mean of the AUC pooled and within rows, contexts and sentences
    context_says               the same, sentences
    grade cuts                 least squared error of grade / 2, both classes of equal weight
    needed and support cuts    mean of Cohen's kappa
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from research.judge_evidence import Evidence, Recall, gather, gather_recall
from research.plain_overlap import PlainOverlap
from ragmetrics.config import make_settings
from ragmetrics.judges import Corpus
from ragmetrics.judges.word_overlap import TUNING, Overlap, Tuning
from ragmetrics.metrics.bundled._support import SUPPORTED_FROM
from ragmetrics.metrics.bundled.context_relevance import ANSWERS_FROM, HELPS_FROM
from ragmetrics.metrics.bundled.context_relevancy import CONTEXT_SAYS, NEAR_BEST, NEEDED_FROM
from ragmetrics.people.calibration.labelled_sets import LabelledSet, read_sets
from ragmetrics.stats.resampling import unweighted
from ragmetrics.people.calibration.agreement_figures import (auc_statistic, auc_within_statistic, kappa_statistic, spearman_statistic)
from ragmetrics.stats.resampling import resampled

GRADED, NEEDED, SUPPORT = "context_relevance", "context_relevancy", "context_recall"
TUNINGS = [
    *(Tuning(part, power) for part in (3, 4, 5) for power in (1, 2, 3)),
    *(Tuning(doubt=doubt) for doubt in (0.0, 1.0, 3.0, 4.0)),
]
CONTEXT_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
GRADE_CUTS = list(product((0.15, 0.2, 0.25, 0.3, 0.35), (0.4, 0.45, 0.5, 0.55, 0.6)))
NEEDED_CUTS = list(product((0.3, 0.4, 0.5, 0.6), (0.7, 0.8, 0.9)))
SUPPORT_CUTS = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)

Choice = TypeVar("Choice")
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Constants:
    """All that was chosen by labelled sets."""

    tuning: Tuning = TUNING
    context_says: float = CONTEXT_SAYS
    grade: tuple[float, float] = (HELPS_FROM, ANSWERS_FROM)
    needed: tuple[float, float] = (NEEDED_FROM, NEAR_BEST)
    support: float = SUPPORTED_FROM


@dataclass(frozen=True)
class Measured:
    """One set: the plain overlap's evidence, and the judge's by every tuning."""

    name: str
    plain: dict[str, Evidence]
    tuned: dict[Tuning, dict[str, Evidence]]
    recall: dict[Tuning, Recall | None]


def _interval(statistic, groups):
    return resampled({"figure": statistic}, groups)["figure"][1]


def auc(labels, scores):
    """The AUC of all units."""
    return unweighted(auc_statistic(labels, scores), len(labels))


def measure(labelled: LabelledSet, tunings: Iterable[Tuning]) -> Measured:
    """Gather the evidence of a set, weighted by its own contexts and questions as a night is."""
    corpus = Corpus()
    rows = [one.labelled.row for one in labelled.rows]
    for row in rows:
        corpus.add(row.retrieved_contexts, row.user_input)
    plain = PlainOverlap(text for row in rows for text in row.retrieved_contexts)
    tuned, recall = {}, {}
    for tuning in tunings:
        lexicon = Overlap(corpus, tuning)
        tuned[tuning] = gather(labelled, lexicon)
        recall[tuning] = gather_recall(labelled, lexicon)
    return Measured(labelled.name, gather(labelled, plain), tuned, recall)


def choose(sets: Sequence[Measured]) -> Constants:
    """The constants that serve these sets best."""
    tuning = _best(TUNINGS, sets, _ranking)
    says = _best(CONTEXT_SHARES, sets, lambda one, share: _area(one.tuned[tuning], NEEDED, share))
    chosen = Constants(tuning, says)
    return Constants(
        tuning,
        says,
        _best(GRADE_CUTS, sets, partial(_grade_fit, chosen)),
        _best(NEEDED_CUTS, sets, partial(_needed_kappa, chosen)),
        _best(SUPPORT_CUTS, sets, partial(_support_kappa, chosen)),
    )


def _best(
    options: Sequence[Choice],
    sets: Sequence[Measured],
    worth: Callable[[Measured, Choice], float | None],
) -> Choice:
    """The option of the highest mean worth; sets that cannot tell have no say."""

    def mean(option: Choice) -> float:
        told = [value for one in sets if (value := worth(one, option)) is not None]
        return float(np.mean(told)) if told else 0.0

    return max(options, key=mean)


def _area(found: Mapping[str, Evidence], metric: str, share: float) -> float | None:
    if metric not in found:
        return None
    one = found[metric]
    strength = one.strength(share if metric == NEEDED else 0.0)
    areas = auc(one.positive, strength), auc_within(one.rows, one.positive, strength)
    return float(np.mean([area for area in areas if area is not None]))


def _ranking(measured: Measured, tuning: Tuning) -> float | None:
    found = measured.tuned[tuning]
    areas = [_area(found, metric, CONTEXT_SAYS) for metric in (GRADED, NEEDED)]
    told = [area for area in areas if area is not None]
    return float(np.mean(told)) if told else None


def _grade_fit(chosen: Constants, measured: Measured, cuts: tuple[float, float]) -> float | None:
    one = measured.tuned[chosen.tuning].get(GRADED)
    if one is None:
        return None
    wrong = np.square(one.positive - _grades(one, cuts))
    return -float(wrong[one.positive].mean() + wrong[~one.positive].mean()) / 2


def _needed_kappa(chosen: Constants, measured: Measured, cuts: tuple[float, float]) -> float | None:
    one = measured.tuned[chosen.tuning].get(NEEDED)
    return cohen_kappa(one.positive, _needed(one, chosen.context_says, cuts)) if one else None


def _needed(one: Evidence, share: float, cuts: tuple[float, float]) -> NDArray[np.bool_]:
    strength = one.strength(share)
    _, codes = np.unique(one.rows, return_inverse=True)
    best: Numbers = np.zeros(codes.max() + 1)
    np.maximum.at(best, codes, strength)
    return np.asarray(strength >= np.maximum(cuts[0], cuts[1] * best[codes]))


def cohen_kappa(
    a: ArrayLike, b: ArrayLike, weights: Literal["quadratic"] | None = None
) -> float | None:
    """Cohen's kappa of all units."""
    return unweighted(kappa_statistic(a, b, weights), np.size(a))


def auc_within(rows: ArrayLike, labels: ArrayLike, scores: ArrayLike) -> float | None:
    """The AUC within rows of all units."""
    return unweighted(auc_within_statistic(rows, labels, scores), np.size(labels))


def spearman(a: ArrayLike, b: ArrayLike) -> float | None:
    """Spearman's correlation of all units."""
    return unweighted(spearman_statistic(a, b), np.size(a))


def _support_kappa(chosen: Constants, measured: Measured, cut: float) -> float | None:
    one = measured.tuned[chosen.tuning].get(SUPPORT)
    return cohen_kappa(one.positive, one.own >= cut) if one else None


def kappa(metric: str, one: Evidence, chosen: Constants) -> float | None:
    """Kappa of the verdicts; that of grades, which are 0, 1 or 2, has quadratic weights."""
    if metric == GRADED:
        return cohen_kappa(one.positive, _grades(one, chosen.grade), "quadratic")
    if metric == NEEDED:
        return cohen_kappa(one.positive, _needed(one, chosen.context_says, chosen.needed))
    return cohen_kappa(one.positive, one.own >= chosen.support)


def _grades(one: Evidence, cuts: tuple[float, float]) -> Numbers:
    """Half the grades, so that they lie on the scale of the labels."""
    return np.asarray(sum((one.own >= cut) / 2 for cut in cuts))


def recall_scores(recall: Recall, cut: float) -> list[float]:
    """`context_recall` of each row."""
    return [float((covered >= cut).mean()) for covered in recall.covered]


def report(sets: Sequence[Measured]) -> str:
    """The tables of docs/how-to/judges.md."""
    lines = [
        "| set | units | positive | plain: within, pooled | judge: within | judge: pooled "
        "| kappa | left out: within, pooled, kappa |",
        "|---|---|---|---|---|---|---|---|",
    ]
    choices, ranks = [], []
    for measured in sets:
        others = [one for one in sets if one is not measured]
        held_out = choose(others) if others else Constants()
        choices.append(f"without {measured.name}: {held_out}")
        for metric in measured.plain:
            lines += _lines(measured, metric, held_out)
        if recall := measured.recall[TUNING]:
            ranks.append(_rank(measured, recall, held_out))
    everything = f"from all sets: {choose(sets)}\nin use: {Constants()}"
    return "\n".join([*lines, "", *ranks, "", *choices, everything])


def _lines(measured: Measured, metric: str, held_out: Constants) -> list[str]:
    plain, one = measured.plain[metric], measured.tuned[TUNING][metric]
    other = measured.tuned[held_out.tuning][metric]
    lines = [_line(f"{measured.name} {metric}", metric, (plain, one, other), held_out)]
    languages = sorted(set(one.languages.tolist()))
    for name in languages if len(languages) > 1 else []:
        inside = plain.where(name), one.where(name), other.where(name)
        lines.append(_line(f"- {name}", metric, inside, held_out))
    return lines


def _line(
    name: str, metric: str, found: tuple[Evidence, Evidence, Evidence], held_out: Constants
) -> str:
    """One line: the plain overlap, the judge, and the judge with what the other sets chose."""
    plain, one, other = found
    in_use = Constants()
    strength, positive = one.strength(_share(metric, in_use)), one.positive
    within = _interval(auc_within_statistic(one.rows, positive, strength), one.questions)
    pooled = _interval(auc_statistic(positive, strength), one.questions)
    theirs = other.strength(_share(metric, held_out))
    cells = [
        name,
        f"{len(positive):,}",
        f"{positive.mean():.2f}",
        _figures(auc_within(plain.rows, plain.positive, plain.own), auc(plain.positive, plain.own)),
        _told(auc_within(one.rows, positive, strength), within),
        _told(auc(positive, strength), pooled),
        _figures(kappa(metric, one, in_use)),
        _figures(
            auc_within(other.rows, other.positive, theirs),
            auc(other.positive, theirs),
            kappa(metric, other, held_out),
        ),
    ]
    return f"| {' | '.join(cells)} |"


def _rank(measured: Measured, recall: Recall, held_out: Constants) -> str:
    scores = recall_scores(recall, SUPPORTED_FROM)
    interval = _interval(spearman_statistic(recall.gold, scores), recall.questions)
    other = measured.recall[held_out.tuning] or recall
    left_out = spearman(other.gold, recall_scores(other, held_out.support))
    return (
        f"{measured.name}: Spearman of context_recall with the gold recall of {len(scores)} rows "
        f"{_told(spearman(recall.gold, scores), interval)}, left out {_figures(left_out)}"
    )


def _share(metric: str, constants: Constants) -> float:
    return constants.context_says if metric == NEEDED else 0.0


def _told(value: float | None, interval: tuple[float, float] | None) -> str:
    return _figures(value) + (f" [{_figures(*interval)}]" if value and interval else "")


def _figures(*values: float | None) -> str:
    return ", ".join("-" if value is None else f"{value:.3f}" for value in values)


def main() -> None:
    """Measure all sets and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m research.judge_quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sets", nargs="+", help="labelled JSONL: docs/how-to/calibrating.md")
    settings: Any = make_settings({})
    sets = [measure(one, TUNINGS) for one in read_sets(settings, parser.parse_args().sets)]
    print(report(sets))


if __name__ == "__main__":
    main()
