"""Draws the sample: how many rows of each metric are judged in a night, and which.

    rows/dt=DATE/run=ID/sample.json      written once, before anything is judged

Each row has a uniform key: the hash of the seed, the question, and the row's rank among the rows of
its question (ordered by the hash of the id, then by position). In each stratum the rows with the
lowest keys are judged. With `draw: active` a row's key is compared with its inclusion probability
(`inclusion.py`). It follows:

- a repeated night, or one with other shards, has the same sample;
- a late row replaces at most one other row;
- a question that occurs every night is judged every night, which suits paired tests;
- the rows of a frequent question are drawn independently.

The plan names the drawn rows by their marks and holds for all parts and retries. A mark is a hash
of the question and the row's id, so it does not depend on the number of shards. Rows with equal
question and id are numbered in their order; all rows of a question are in one shard.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import repeat
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragmetrics.config import SampleSettings, Settings
from ragmetrics.errors import StoreError
from ragmetrics.metrics import Metric
from ragmetrics.model import FIELDS, Manifest, Record, Summary, question_key
from ragmetrics.scoring.metric_choice import chosen_metrics, score_families
from ragmetrics.scoring.sampling.cheap import choose_learned
from ragmetrics.scoring.sampling.cheap_scores import cheap_fingerprint, load_cheap
from ragmetrics.scoring.sampling.inclusion import Design, Drawn, choose_design, draw
from ragmetrics.scoring.sampling.uncertainty import Uncertainty, fit_uncertainty
from ragmetrics.stats import Floats, rows_to_judge
from ragmetrics.storage import Files, RunRef, outlines, read_records, require_record

log = logging.getLogger(__name__)
LANGUAGE = "language"
"""A row without a tag of this name uses its field `language`."""
FEWEST = 100
"""Smallest sample for a `half_width`: fewer rows give no reliable standard deviation."""
WIDEST = 0.5
"""Standard deviation that is assumed on the first night: the largest of scores in [0, 1]."""
_NIGHTS = 7
_LOOKED_THROUGH = 30
_95 = 1.96
_NO_PRINTS: Mapping[str, str] = MappingProxyType({})
_ALWAYS = {"id", "user_input", "tags", "language"}
Keys = NDArray[np.uint64]


def mark_of(question_key: str, row_id: str) -> str:
    """The mark of the first row with a question and an id: sixteen hex digits."""
    return _digest(f"{question_key} {row_id}")


def mark_again(mark: str, number: int) -> str:
    """The mark of a further row with the same question and id; `number` starts at 1."""
    return _digest(f"{mark} again {number}")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class RowIds:
    """Computes the marks of a shard's rows. Call `of` once per row, in order."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, question_key: str, row_id: str) -> str:
        """The mark of the next row."""
        mark = mark_of(question_key, row_id)
        number = self._seen[mark]
        self._seen[mark] += 1
        return mark_again(mark, number) if number else mark


def stratum_of(tags: Mapping[str, str], language: str | None, names: Sequence[str]) -> str:
    """A row's values of some tags as one text. A missing tag counts as a value of its own."""
    own = {LANGUAGE: language, **tags} if language else tags
    return "\x1f".join("\x1e" if (value := own.get(name)) is None else value for name in names)


@dataclass(frozen=True, slots=True)
class Chance:
    """How a judged row was drawn."""

    probability: float
    """Its inclusion probability."""
    compared: bool
    """Whether it is in the uniform part of the sample."""


_CERTAIN = Chance(1.0, compared=True)


class Group(Record):
    """Metrics with the same sample."""

    metrics: tuple[str, ...]
    rows: int
    """Number of rows with all fields that these metrics need."""
    judged: int
    """Number of rows that are judged."""
    strata: tuple[str, ...] = ()
    """Strata that were sampled separately. All other rows are one more stratum."""
    marks: tuple[str, ...] | None = None
    """Marks of the rows that are judged; None: all rows are judged."""
    weighted: bool = False
    """Whether rows have an inclusion probability of their own: with active sampling."""
    probabilities: tuple[float, ...] = ()
    """The inclusion probability of each of these marks; empty where all are 1."""
    compared: tuple[bool, ...] = ()
    """Whether each of these marks is in the uniform part of the sample; empty where all are."""
    uniform: str = ""
    """Why rows had equal chances despite active sampling; empty otherwise."""

    def chance(self, mark: str) -> Chance | None:
        """How a judged row was drawn; None without active sampling."""
        return self._chances.get(mark, _CERTAIN) if self.weighted and self.judges(mark) else None

    @cached_property
    def _chances(self) -> Mapping[str, Chance]:
        """How each judged row was drawn, where its probability is not 1."""
        pairs = zip(self.probabilities, self.compared or repeat(True), strict=False)
        return {mark: Chance(*how) for mark, how in zip(self.marks or (), pairs, strict=False)}

    @cached_property
    def sample(self) -> frozenset[str] | None:
        """The marks as a set."""
        return None if self.marks is None else frozenset(self.marks)

    @cached_property
    def own_strata(self) -> frozenset[str]:
        """The strata as a set."""
        return frozenset(self.strata)

    def judges(self, mark: str) -> bool:
        """True when a row is judged."""
        return self.sample is None or mark in self.sample

    def stratum(self, name: str) -> str:
        """The stratum in which rows with these tags were sampled."""
        return name if name in self.own_strata else ""


class SamplePlan(Record):
    """The sample of a run. Metrics that use no judge are in no group."""

    tags: tuple[str, ...] = ()
    """Tags whose values define the strata."""
    groups: tuple[Group, ...] = ()
    cheap: str = ""
    """Path of the learned judge that scores all rows; empty: the embedded judge does."""
    cheap_note: str = ""
    """A sentence on the judge of all rows, for people."""
    draw: str = "uniform"
    """How rows were drawn by the settings: `uniform` or `active`."""

    def left_out(self, mark: str) -> set[str]:
        """The metrics that do not judge a row."""
        return {name for group in self.groups if not group.judges(mark) for name in group.metrics}

    def group(self, metric: str) -> Group | None:
        """The group of a metric; None when it uses no judge."""
        return next((one for one in self.groups if metric in one.metrics), None)


def _path(ref: RunRef) -> str:
    return f"{ref.folder('rows')}/sample.json"


def save_sample(files: Files, ref: RunRef, plan: SamplePlan) -> None:
    """Write the plan of a run."""
    files.write(_path(ref), plan.model_dump_json().encode())


def load_sample(files: Files, ref: RunRef) -> SamplePlan | None:
    """The plan of a run; None when all rows are judged. Raises StoreError."""
    return require_record(files, _path(ref), SamplePlan)


@dataclass(frozen=True)
class Known:
    """What is known about a metric from earlier nights."""

    spread: float = WIDEST
    """Standard deviation of the expensive judge's scores."""
    correlation: float = 0.0
    """Correlation of the expensive judge's scores with the cheap judge's."""


@dataclass
class SamplingFrame:
    """Data of every row of a night that the draw needs: 24 bytes per row."""

    kinds: Sequence[Sequence[Metric]]
    """Groups of metrics that need the same fields and share requests."""
    tags: Sequence[str] = ()
    questions: array[int] = field(default_factory=lambda: array("I"))
    first_marks: array[int] = field(default_factory=lambda: array("Q"))
    """Row ids before duplicates of question and id are numbered."""
    codes: array[int] = field(default_factory=lambda: array("i"))
    """The stratum of each row as a number."""
    strata: dict[str, int] = field(default_factory=dict)
    """Maps the name of a stratum to its number."""
    fits: array[int] = field(default_factory=lambda: array("Q"))
    """One bit per group of metrics: set when the row has all fields that the group needs."""

    @property
    def columns(self) -> list[str]:
        """The columns to read."""
        needed = {
            name
            for kind in self.kinds
            for need in kind[0].needs
            for name in re.split(r" [+|] ", need)
        }
        return sorted(_ALWAYS | needed & set(FIELDS) - {"retrieved_contexts"})

    def count(self, record: Mapping[str, Any]) -> None:
        """Add a row."""
        filled = {name for name, value in record.items() if value} | {"retrieved_contexts"}
        key = question_key(record["user_input"])
        stratum = stratum_of(dict(record["tags"] or ()), record["language"], self.tags)
        self.questions.append(int(key, 16))
        self.first_marks.append(int(mark_of(key, record["id"]), 16))
        self.codes.append(self.strata.setdefault(stratum, len(self.strata)))
        self.fits.append(sum(kind[0].fits(filled) << n for n, kind in enumerate(self.kinds)))

    def marks(self) -> Keys:
        """The unique ids of the rows, in their order."""
        found = np.array(self.first_marks, dtype=np.uint64)
        order = np.argsort(found, kind="stable")
        further = order[1:][found[order[1:]] == found[order[:-1]]]
        seen: Counter[int] = Counter()
        for at in further.tolist():
            first = self.first_marks[at]
            seen[first] += 1
            found[at] = int(mark_again(f"{first:016x}", seen[first]), 16)
        return found

    def keys(self, seed: int) -> Keys:
        """The random keys of the rows, in their order."""
        questions = np.frombuffer(self.questions, dtype=np.uint32)
        order = np.lexsort((np.frombuffer(self.first_marks, dtype=np.uint64), questions))
        keys = np.empty(len(order), dtype=np.uint64)
        last, rank = -1, 0
        for at in order.tolist():
            question = self.questions[at]
            rank = rank + 1 if question == last else 0
            last = question
            keys[at] = _key(seed, question, rank)
        return keys


def _key(seed: int, question: int, rank: int) -> int:
    digest = hashlib.blake2b(f"sample {seed} {question:08x} {rank}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "big")


def plan_sample(
    settings: Settings,
    files: Files,
    ref: RunRef,
    prints: Mapping[str, str] = _NO_PRINTS,
    score_cheap: Callable[[Sequence[str], str], None] | None = None,
) -> SamplePlan | None:
    """Draw the rows of a staged run that are judged, or load the sample that was drawn before.

    None when all rows are judged. `prints` are the fingerprints of the metrics; a `half_width` and
    active sampling use them to find comparable nights. `score_cheap` computes and stores the cheap
    scores of all rows for some metrics, by the learned judge at a path; without it rows have equal
    chances.
    """
    sample = settings.sample
    if sample is None or not settings.samples:
        return None
    if (found := load_sample(files, ref)) is not None:
        return found
    frame = read_sampling_frame(settings, files, ref)
    looks_back = prints and (sample.half_width is not None or sample.draw == "active")
    past = outlines(files, before=ref.date, last=_LOOKED_THROUGH) if looks_back else []
    cheap, note = choose_learned(settings, files)
    uncertain: dict[str, Floats] = {}
    if sample.draw == "active" and score_cheap:
        fitted = _fit_all(frame, past, prints, cheap)
        score_cheap(list(fitted), cheap)
        uncertain = {name: one.of(_cheap(files, ref, name)) for name, one in fitted.items()}
    plan = draw_all(sample, frame, past, prints, uncertain)
    plan = plan.model_copy(update={"cheap": cheap, "cheap_note": note})
    save_sample(files, ref, plan)
    for one in plan.groups:
        how = f" with equal chances: {one.uniform}" if one.uniform else ""
        log.info(
            "%s: %d of %d rows to be judged%s", ", ".join(one.metrics), one.judged, one.rows, how
        )
    return plan


def _fit_all(
    frame: SamplingFrame, past: Sequence[Manifest], prints: Mapping[str, str], cheap: str
) -> dict[str, Uncertainty]:
    """The uncertainty of each metric that has enough pairs of scores of earlier nights."""
    own = cheap_fingerprint(cheap)
    nights = [one for one in past if one.sample and one.sample.cheap_fingerprint == own]
    found = {}
    for name in (metric.name for kind in frame.kinds for metric in kind):
        seen = comparable(nights, name, prints.get(name))
        bins = [one.sample.bins for one in seen if one.sample and one.sample.bins]
        if (fitted := fit_uncertainty(bins)) is not None:
            found[name] = fitted
    return found


def _cheap(files: Files, ref: RunRef, metric: str) -> Floats:
    """The stored cheap scores of all rows of a run."""
    shards = []
    for shard in range(ref.shards):
        found = load_cheap(files, ref, metric, shard)
        if found is None:
            path = files.uri(ref.cheap(metric, shard))
            raise StoreError(f"{path} is missing: run the night again", transient=True)
        shards.append(found)
    return np.concatenate(shards)


def read_sampling_frame(settings: Settings, files: Files, ref: RunRef) -> SamplingFrame:
    """Read the data for the draw from a staged run, for the metrics that use a judge."""
    metrics = {one.name: one for one in chosen_metrics(settings) if one.prompts}
    kinds: dict[tuple[int, tuple[str, ...]], list[Metric]] = {}
    for number, family in enumerate(score_families(settings)):
        for metric in (metrics[name] for name in family if name in metrics):
            kinds.setdefault((number, metric.needs), []).append(metric)
    tags = settings.sample.strata if settings.sample else ()
    frame = SamplingFrame(list(kinds.values()), tags)
    columns = frame.columns
    for shard in range(ref.shards):
        for record in read_records(files, ref.rows(shard), columns):
            frame.count(record)
    return frame


def draw_all(
    sample: SampleSettings,
    frame: SamplingFrame,
    past: Sequence[Manifest],
    prints: Mapping[str, str],
    uncertain: Mapping[str, Floats] | None = None,
) -> SamplePlan:
    """Draw rows for each group of metrics, among the rows with the fields that it needs.

    `uncertain` is the uncertainty of every row of the night by metric, for active sampling.
    """
    keys, fits = frame.keys(sample.seed), np.frombuffer(frame.fits, dtype=np.uint64)
    marks = frame.marks()
    codes, names = np.frombuffer(frame.codes, dtype=np.int32), list(frame.strata)
    groups = []
    for number, kind in enumerate(frame.kinds):
        there = np.flatnonzero(fits >> np.uint64(number) & np.uint64(1))
        seen = [known(comparable(past, one.name, prints.get(one.name))) for one in kind]
        own = [(uncertain or {}).get(one.name) for one in kind]
        design = choose_design([None if one is None else one[there] for one in own], len(there))

        wanted = partial(_most_wanted, sample, len(there), seen)
        drawn = draw(keys[there], codes[there], names, design.rows(wanted), design.relative)
        own_marks = marks[there[drawn.rows]]
        order = np.argsort(own_marks)
        groups.append(
            Group(
                metrics=tuple(one.name for one in kind),
                rows=len(there),
                judged=len(drawn.rows),
                strata=tuple(drawn.strata),
                marks=None
                if len(drawn.rows) == len(there)
                else tuple(f"{mark:016x}" for mark in own_marks[order].tolist()),
                **(_chances(drawn, order, design) if sample.draw == "active" else {}),
            )
        )
    return SamplePlan(tags=sample.strata, groups=tuple(groups), draw=sample.draw)


def _chances(drawn: Drawn, order: NDArray[np.intp], design: Design) -> dict[str, Any]:
    """The fields of a group with inclusion probabilities, of six digits each."""
    compared = () if drawn.compared.all() else tuple(drawn.compared[order].tolist())
    chances = drawn.probabilities[order]
    return {
        "weighted": True,
        "probabilities": ()
        if (chances == 1).all()
        else tuple(float(f"{one:.6g}") for one in chances.tolist()),
        "compared": compared,
        "uniform": design.uniform,
    }


def _most_wanted(
    sample: SampleSettings, rows: int, seen: Sequence[Known], ratios: Sequence[float]
) -> int:
    """The largest sample size that one of some metrics needs."""
    pairs = zip(seen, ratios, strict=True)
    return max(wanted_rows(sample, rows, one, ratio) for one, ratio in pairs)


def wanted_rows(sample: SampleSettings, rows: int, seen: Known, ratio: float = 1.0) -> int:
    """The sample size for a metric that can be scored on so many rows. `ratio` is the variance of
    unequal inclusion probabilities, compared with equal ones.
    """
    if sample.half_width is None:
        return min(sample.rows or 0, rows)
    wanted = rows_to_judge(sample.half_width, seen.spread, seen.correlation, rows, ratio)
    return min(max(wanted, FEWEST), rows)


def comparable(past: Sequence[Manifest], metric: str, fingerprint: str | None) -> list[Summary]:
    """A metric's summaries of the last seven nights with the same fingerprint."""
    found = [
        summary
        for night in past
        if (summary := night.summary(metric)) and summary.fingerprint == fingerprint
    ]
    return found[-_NIGHTS:]


def known(found: Sequence[Summary]) -> Known:
    """Standard deviation and correlation of a metric, from summaries of earlier nights.

        s^2 = mean of s_night^2,   r = mean of r_night

    Nights without a sample have no correlation. Without any night s is the largest standard
    deviation that scores in [0, 1] can have.
    """
    spreads = [one for summary in found if (one := _spread(summary)) is not None]
    if not spreads:
        return Known()
    agreed = [one.sample.correlation for one in found if one.sample]
    correlations = [one for one in agreed if one is not None]
    spread = math.sqrt(sum(one**2 for one in spreads) / len(spreads))
    return Known(spread, sum(correlations) / len(correlations) if correlations else 0.0)


def _spread(summary: Summary) -> float | None:
    """The standard deviation of a night's scores; without a sample it follows from the interval."""
    if summary.sample:
        return summary.sample.spread
    if summary.low is None or summary.high is None:
        return None
    return (summary.high - summary.low) / 2 / _95 * math.sqrt(summary.scored)
