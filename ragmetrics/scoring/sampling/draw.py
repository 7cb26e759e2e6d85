"""Draws the sample: which rows of each metric are judged in a night.

Each row has a uniform key: the hash of the seed, the question, and the row's rank among the rows of
its question (ordered by the hash of the id, then by position). In each stratum the rows with the
lowest keys are judged. With `draw: active` a row's key is compared with its inclusion probability
(`inclusion.py`). It follows:

- a repeated night, or one with other shards, has the same sample;
- a late row replaces at most one other row;
- a question that occurs every night is judged every night, which suits paired tests;
- the rows of a frequent question are drawn independently.
"""

from __future__ import annotations

import hashlib
import logging
import re
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragmetrics.config import SampleSettings, Settings
from ragmetrics.errors import StoreError
from ragmetrics.metrics import Metric
from ragmetrics.records import FIELDS, Manifest, question_key
from ragmetrics.scoring.metric_choice import chosen_metrics, score_families
from ragmetrics.scoring.sampling.cheap_scores import cheap_fingerprint, choose_learned, load_cheap
from ragmetrics.scoring.sampling.inclusion import Design, Drawn, choose_design, draw
from ragmetrics.scoring.sampling.plan import (
    Group,
    SamplePlan,
    load_sample,
    mark_again,
    mark_of,
    stratum_of,
)
from ragmetrics.scoring.sampling.sample_size import Known, comparable, known, wanted_rows
from ragmetrics.scoring.sampling.uncertainty import Uncertainty, fit_uncertainty
from ragmetrics.stats import Numbers
from ragmetrics.storage import Files, RunRef, Runs, StoredPart

log = logging.getLogger(__name__)
_LOOKED_THROUGH = 30
_NO_PRINTS: Mapping[str, str] = MappingProxyType({})
_ALWAYS = {"id", "user_input", "tags", "language"}
Keys = NDArray[np.uint64]


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
        keys = np.array(self.first_marks, dtype=np.uint64)
        order = np.argsort(keys, kind="stable")
        further = order[1:][keys[order[1:]] == keys[order[:-1]]]
        seen: Counter[int] = Counter()
        for at in further.tolist():
            first = self.first_marks[at]
            seen[first] += 1
            keys[at] = int(mark_again(f"{first:016x}", seen[first]), 16)
        return keys

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
    if (earlier := load_sample(files, ref)) is not None:
        return earlier
    frame = read_sampling_frame(settings, files, ref)
    looks_back = prints and (sample.half_width is not None or sample.draw == "active")
    past = Runs(files).outlines(before=ref.date, last=_LOOKED_THROUGH) if looks_back else []
    cheap, note = choose_learned(settings, files)
    uncertain: dict[str, Numbers] = {}
    if sample.draw == "active" and score_cheap:
        fitted = _fit_all(frame, past, prints, cheap)
        score_cheap(list(fitted), cheap)
        uncertain = {name: one.of(_cheap(files, ref, name)) for name, one in fitted.items()}
    plan = draw_all(sample, frame, past, prints, uncertain)
    plan = plan.model_copy(update={"cheap": cheap, "cheap_note": note})
    files.write(ref.beside_rows("sample"), plan.model_dump_json().encode())
    for group in plan.groups:
        how = f" with equal chances: {group.uniform}" if group.uniform else ""
        names = ", ".join(group.metrics)
        log.info("%s: %d of %d rows to be judged%s", names, group.judged, group.rows, how)
    return plan


def _fit_all(
    frame: SamplingFrame, past: Sequence[Manifest], prints: Mapping[str, str], cheap: str
) -> dict[str, Uncertainty]:
    """The uncertainty of each metric that has enough pairs of scores of earlier nights."""
    fingerprint = cheap_fingerprint(cheap)
    nights = [one for one in past if one.sample and one.sample.cheap_fingerprint == fingerprint]
    fits = {}
    for name in (metric.name for kind in frame.kinds for metric in kind):
        seen = comparable(nights, name, prints.get(name))
        bins = [one.sample.bins for one in seen if one.sample and one.sample.bins]
        if (fitted := fit_uncertainty(bins)) is not None:
            fits[name] = fitted
    return fits


def _cheap(files: Files, ref: RunRef, metric: str) -> Numbers:
    """The stored cheap scores of all rows of a run."""
    shards = []
    for shard in range(ref.shards):
        scores = load_cheap(files, ref, metric, shard)
        if scores is None:
            path = files.uri(ref.cheap(metric, shard))
            raise StoreError(f"{path} is missing: run the night again", transient=True)
        shards.append(scores)
    return np.concatenate(shards)


def read_sampling_frame(settings: Settings, files: Files, ref: RunRef) -> SamplingFrame:
    """Read the data for the draw from a staged run, for the metrics that use a judge."""
    metrics = {metric.name: metric for metric in chosen_metrics(settings) if metric.prompts}
    kinds: dict[tuple[int, tuple[str, ...]], list[Metric]] = {}
    for number, family in enumerate(score_families(settings)):
        for metric in (metrics[name] for name in family if name in metrics):
            kinds.setdefault((number, metric.needs), []).append(metric)
    tags = settings.sample.strata if settings.sample else ()
    frame = SamplingFrame(list(kinds.values()), tags)
    columns = frame.columns
    for shard in range(ref.shards):
        for record in StoredPart(files, ref.rows(shard)).records(columns):
            frame.count(record)
    return frame


def draw_all(
    sample: SampleSettings,
    frame: SamplingFrame,
    past: Sequence[Manifest],
    prints: Mapping[str, str],
    uncertain: Mapping[str, Numbers] | None = None,
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
        of_kind = [(uncertain or {}).get(one.name) for one in kind]
        design = choose_design([None if one is None else one[there] for one in of_kind], len(there))

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
        else tuple(float(f"{chance:.6g}") for chance in chances.tolist()),
        "compared": compared,
        "uniform": design.uniform,
    }


def _most_wanted(
    sample: SampleSettings, rows: int, seen: Sequence[Known], ratios: Sequence[float]
) -> int:
    """The largest sample size that one of some metrics needs."""
    pairs = zip(seen, ratios, strict=True)
    return max(wanted_rows(sample, rows, one, ratio) for one, ratio in pairs)
