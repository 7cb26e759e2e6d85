"""What people would say, from 60 labels: `python -m research labels`.

A night has 2,000 rows, with 1 to 3 rows a question. People grade the contexts of a row 0, 1 or 2
(`context_relevance`), or say yes or no once (a metric of one verdict). The judge agrees with them
except for noise, and a bias of 0.1 in the mean, which has one of these forms:

    shift     a step more, on contexts by chance
    scale     every grade is nearer to the best one (of one verdict a row: as flips)
    flips     bad contexts become good ones, those of no use twice as often as others
    segment   only contexts of a third of the questions become good ones
    none      it is wrong as often in both directions, so its mean is right

People label 60 rows: of tonight by a uniform draw or by that of `labels suggest` with a cheap judge
beside, or of an earlier night that was better by 0.1. Then the labelled sets of `RAGMETRICS_DATA`:
their labels are people, the lexical judge is the judge, and a night is a draw of a set's questions
with replacement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ragmetrics.config import make_settings
from ragmetrics.judges import Corpus
from ragmetrics.judges.word_overlap import TUNING, Overlap
from ragmetrics.people.calibration.labelled_sets import TARGETS, LabelledSet, LabelTarget, read_sets
from ragmetrics.people.labels.people_estimate import JudgedNight, PeopleEstimate, people_mean
from ragmetrics.people.labels.row_draw import draw_order, relative_chances
from ragmetrics.records import Lexicon
from ragmetrics.stats import mean_interval
from research.moving_world import data_folder

DRAWS = 2_000
SEED = 59
ROWS, LABELS = 2_000, 60
FORMS = ("shift", "scale", "flips", "segment", "none")
KINDS = ("grades", "yes or no")
DESIGNS = ("uniform", "suggested", "earlier night")
_BIAS = 0.1
_SKILL = (2.4, 1.6)
"""The beta distribution of how good the contexts of a question are; its mean is the truth."""
TRUTH = _SKILL[0] / sum(_SKILL)

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int_]


@dataclass(frozen=True)
class World:
    """A night: the judge's and the people's value of each row, and its question."""

    judge: Floats
    people: Floats
    question: Codes
    cheap: Floats
    """Scores of a cheap judge, whose distance from the judge is a signal for the draw."""


@dataclass(frozen=True)
class Found:
    """What became of a cell."""

    coverage: float
    told: float
    """Share of the draws in which the judge is told to be biased."""
    half_width: float
    labels_alone: float
    """Half width of the mean of the labelled rows alone."""


def make_world(
    form: str, kind: str, random: np.random.Generator, *, rows: int = ROWS, better: float = 0.0
) -> World:
    """A night. `better` is how much better people find it."""
    question, grades, noisy = _people(form, kind, random, rows, better)
    judge = _biased(form, noisy, question, _strength(form, kind, better), random)
    cheap = _flip(grades, 0.2, _step(kind), random)
    return World(judge.mean(axis=1), grades.mean(axis=1), question, cheap.mean(axis=1))


def _people(
    form: str, kind: str, random: np.random.Generator, rows: int, better: float
) -> tuple[Codes, Floats, Floats]:
    """Questions, people's grades, and the same by a judge that is wrong but not biased."""
    sizes = random.integers(1, 4, rows)
    question = np.repeat(np.arange(rows), sizes)[:rows]
    contexts, steps = (5, 2) if kind == "grades" else (1, 1)
    skill = np.clip(random.beta(*_SKILL, rows) + better, 0, 1)[question]
    grades = random.binomial(steps, skill[:, None], (rows, contexts)).astype(np.float64) / steps
    return question, grades, _flip(grades, 0.1 if form == "none" else 0.04, _step(kind), random)


def _step(kind: str) -> float:
    return 0.5 if kind == "grades" else 1.0


@cache
def _strength(form: str, kind: str, better: float) -> float:
    """The strength with which a form of bias raises the mean by 0.1, by halving on many rows."""
    if form == "none":
        return 0.0
    low, high = 0.0, 1.0
    random = np.random.default_rng(SEED)
    question, _, noisy = _people(form, kind, random, 200_000, better)
    for _ in range(20):
        middle = (low + high) / 2
        judge = _biased(form, noisy, question, middle, np.random.default_rng(1))
        low, high = (middle, high) if float((judge - noisy).mean()) < _BIAS else (low, middle)
    return low


def _biased(
    form: str, noisy: Floats, question: Codes, strength: float, random: np.random.Generator
) -> Floats:
    """The judge's grades with a form of bias."""
    chance, graded = random.random(noisy.shape), noisy.shape[1] > 1
    if form == "shift":
        better = np.minimum(noisy + (0.5 if graded else 1.0), 1.0)
        return np.where(chance < strength, better, noisy)
    if form == "scale" and graded:
        return np.asarray(1 - (1 - strength) * (1 - noisy))
    if form == "segment":
        reached = np.broadcast_to(((question % 3) == 0)[:, None], noisy.shape).astype(np.float64)
    else:
        reached = np.where(noisy == 0, 1.0, 0.5)
    return np.where(chance < strength * reached, 1.0, noisy)


def _flip(grades: Floats, chance: float, step: float, random: np.random.Generator) -> Floats:
    """Grades, some of which are moved by a step up or down, as many in both directions."""
    up = (random.random(grades.shape) < chance) & (grades < 1)
    balance = chance * float((grades < 1).mean()) / float((grades > 0).mean())
    down = (random.random(grades.shape) < balance) & (grades > 0) & ~up
    moved: Floats = np.clip(grades + step * up - step * down, 0, 1)
    return moved


def draw_labels(
    world: World, count: int, random: np.random.Generator, *, suggested: bool
) -> Floats:
    """The weight of each row that people label; 0 for all others."""
    rows = len(world.judge)
    signals = [np.abs(world.cheap - world.judge)] if suggested else []
    chances = relative_chances(signals, rows)
    chosen = draw_order(random.random(rows), chances)[:count]
    weights = np.zeros(rows)
    weights[chosen] = 1 / chances[chosen]
    return weights


def estimate(tonight: World, labelled: World, weights: Floats) -> PeopleEstimate:
    """What people would say of tonight, by labels of a night that may be tonight."""
    chosen = weights > 0
    nights = [_judged(tonight), _judged(labelled)]
    found = people_mean(
        labelled.judge[chosen],
        labelled.people[chosen],
        labelled.question[chosen],
        nights,
        np.full(int(chosen.sum()), int(labelled is not tonight)),
        weights[chosen],
    )
    assert found is not None
    return found


def _judged(world: World) -> JudgedNight:
    found = mean_interval(world.judge, world.question)
    assert found is not None
    assert found.error is not None
    return JudgedNight(found.mean, found.error)


def measure(
    form: str, kind: str, design: str, draws: int = DRAWS, labels: int = LABELS, seed: int = SEED
) -> Found:
    """Simulate a cell."""
    random = np.random.default_rng([seed, *map(ord, form + kind + design)])
    told = []
    for _ in range(draws):
        tonight = make_world(form, kind, random)
        earlier = design == "earlier night"
        labelled = make_world(form, kind, random, better=0.1) if earlier else tonight
        weights = draw_labels(labelled, labels, random, suggested=design == "suggested")
        told.append(_outcome(estimate(tonight, labelled, weights), TRUTH, labelled, weights))
    return Found(*np.mean(told, axis=0).tolist())


def _outcome(
    one: PeopleEstimate, truth: float, world: World, weights: Floats
) -> tuple[float, float, float, float]:
    low, high = one.mean.low, one.mean.high
    assert low is not None
    assert high is not None
    alone = mean_interval(world.people[weights > 0], world.question[weights > 0])
    assert alone is not None
    assert alone.low is not None
    assert alone.high is not None
    return (
        float(low <= truth <= high),
        float(one.p_value < 0.05),
        (high - low) / 2,
        (alone.high - alone.low) / 2,
    )


SETS = ("azure_northwind", "chunkeval_bm25", "hotpot_multihop", "selqa_sentences")
_FEWEST_ROWS = 100
_HEAD = "| draws | coverage | told biased | half width | labels alone |"


def real_worlds() -> Iterator[tuple[str, World]]:
    """The labelled sets, metric by metric: labels are people, the lexical judge is the judge."""
    folder = data_folder()
    places = [
        str(folder / f"{name}.jsonl") for name in SETS if (folder / f"{name}.jsonl").is_file()
    ]
    for labelled in read_sets(make_settings({}), places):
        corpus = Corpus()
        for one in labelled.rows:
            corpus.add(one.labelled.row.retrieved_contexts, one.labelled.row.user_input)
        lexicon = Overlap(corpus, TUNING)
        for target in TARGETS:
            world = _real_world(labelled, target, lexicon)
            if world:
                yield f"{labelled.name} {target.metric}", world


def _real_world(labelled: LabelledSet, target: LabelTarget, lexicon: Lexicon) -> World | None:
    rows: list[tuple[str, float, float]] = []
    for one in labelled.rows:
        asked = one.questions.get(target.metric, [])
        labels = [label for question in asked for label in question.labels]
        verdicts = [
            verdict
            for question in asked
            if question.ask.prompt.baseline
            for verdict in target.verdicts(
                question.ask.prompt.baseline(question.ask.data, lexicon), question
            )
        ]
        if labels and len(verdicts) == len(labels):
            rows.append((one.labelled.question, float(np.mean(verdicts)), float(np.mean(labels))))
    if len(rows) < _FEWEST_ROWS:
        return None
    questions, judge, people = zip(*rows, strict=True)
    codes = np.unique(np.array(questions), return_inverse=True)[1]
    return World(np.array(judge), np.array(people), codes, np.array(judge))


def measure_real(name: str, world: World, draws: int, labels: int = LABELS) -> Found:
    """Nights that are draws of a set's questions with replacement; the truth is the set's mean."""
    random = np.random.default_rng([SEED, *map(ord, name)])
    members = [np.flatnonzero(world.question == code) for code in np.unique(world.question)]
    truth = float(world.people.mean())
    told = []
    for _ in range(draws):
        drawn = [members[at] for at in random.integers(0, len(members), len(members))]
        rows = np.concatenate(drawn)
        codes = np.repeat(np.arange(len(drawn)), [len(one) for one in drawn])
        tonight = replace(
            world,
            judge=world.judge[rows],
            people=world.people[rows],
            question=codes,
            cheap=world.cheap[rows],
        )
        weights = draw_labels(tonight, labels, random, suggested=False)
        told.append(_outcome(estimate(tonight, tonight, weights), truth, tonight, weights))
    return Found(*np.mean(told, axis=0).tolist())


def report(draws: int = DRAWS) -> Iterator[str]:
    """All figures, line by line."""
    yield f"| {LABELS} labels | bias | draw {_HEAD}"
    yield "|---" * 8 + "|"
    for kind in KINDS:
        for form in FORMS:
            for design in DESIGNS:
                yield _line(
                    f"{kind} | {form} | {design}", draws, measure(form, kind, design, draws)
                )
    yield from _ceiling()
    yield f"\n| yes or no, flips {_HEAD}"
    yield "|---" * 6 + "|"
    for labels in (100, 150, 200):
        yield _line(
            f"{labels} labels", draws, measure("flips", "yes or no", "uniform", draws, labels)
        )
    yield f"\n| set, {LABELS} labels | bias {_HEAD}"
    yield "|---" * 7 + "|"
    for name, world in real_worlds():
        bias = float((world.judge - world.people).mean())
        yield _line(f"{name} | {bias:+.3f}", draws, measure_real(name, world, draws))


def _ceiling() -> Iterator[str]:
    from research.label_ceiling import best_test, known_spread, labels_needed, rates_of

    yield (
        f"\n| yes or no, {LABELS} labels | draw | told by the best test | by a normal test that "
        "knows the spread | labels for 90% by the best test |"
    )
    yield "|---" * 5 + "|"
    for form in FORMS[:-1]:
        for design in DESIGNS:
            rates = rates_of(form, design)
            yield (
                f"| {form} | {design} | {best_test(rates, LABELS):.1%} "
                f"| {known_spread(rates, LABELS):.1%} | {labels_needed(rates)} |"
            )


def _line(what: str, draws: int, one: Found) -> str:
    return (
        f"| {what} | {draws:,} | {one.coverage:.1%} | {one.told:.1%} | {one.half_width:.3f} "
        f"| {one.labels_alone:.3f} |"
    )
