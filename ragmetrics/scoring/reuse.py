"""Reuses the scores of an earlier run of the same night for rows that did not change.

rows/dt=DATE/run=ID/reuse.json    what the run's scores depend on, and which runs it may reuse

A part is reused when the rows of its shard are equal byte by byte, and so is everything else that
its metrics depend on: version, metric, and judge or embedder if they use one. Not reused are:

- metrics of a judge that weighs words by their frequency in the night: one new row changes them;
- parts with rows without a verdict: a new attempt may succeed;
- runs with a budget or a sample: both depend on all rows of the night.

Running a night again without new data gives the same run. If that run ended with rows without a
verdict, there is a new attempt with its own name: ID-2, ID-3 and so on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from pydantic import Field

from ragmetrics.config import Settings
from ragmetrics.logs import NightInputs
from ragmetrics.metrics import Metric
from ragmetrics.records import UNSETTLED, Record, Status, Summary, TopicModel, fingerprint
from ragmetrics.scoring.metric_choice import chosen_metrics
from ragmetrics.scoring.sharding import plan_run
from ragmetrics.scoring.staging import Staged
from ragmetrics.storage import (
    DamagedPart,
    Files,
    RunRef,
    Runs,
    StoredPart,
    find_record,
    save_record,
)
from ragmetrics.version import __version__

log = logging.getLogger(__name__)

_MOST_RUNS = 5
_SETTLED = {Status.SCORED.value, Status.NOT_APPLICABLE.value}
_WITHOUT_VERDICT = {one.value for one in UNSETTLED}


class ReusableRun(Record):
    """An earlier run of the same night, and which of its parts may be reused."""

    ref: RunRef
    shards: tuple[int, ...]
    """Shards with the same rows."""
    metrics: tuple[str, ...]
    """Metrics for which nothing else changed."""


class Reuse(Record):
    """What a run's scores depend on besides its rows, and the reusable runs, newest first."""

    bases: dict[str, str] = Field(default_factory=dict)
    """Maps a metric to a digest of everything that its scores depend on, without the rows."""
    earlier: tuple[ReusableRun, ...] = ()


def staged_runs(files: Files, day: date) -> list[Staged]:
    """The staged runs of a night, newest first."""
    folder = f"rows/dt={day.isoformat()}"
    folders = (info.path.removesuffix("/staged.json") for info in files.below(folder)
               if info.path.endswith("/staged.json"))  # fmt: skip
    runs = (staged for folder in folders if (staged := Staged.find(files, folder)))
    return sorted(runs, key=lambda one: (one.started_at, one.ref.run), reverse=True)


def plan_attempt(
    settings: Settings,
    files: Files,
    day: date,
    inputs: NightInputs,
    judged_by: str,
    topics: TopicModel | None,
    begun: datetime | None,
) -> RunRef:
    """The name of a night's run, or of its newest attempt (see `find_attempt`). Rows stay in the
    shards of the night's earlier runs.
    """
    earlier = staged_runs(files, day)
    shards = earlier[0].ref.shards if earlier else None
    first = plan_run(settings, day, inputs, judged_by, shards, topics)
    return find_attempt(files, first, earlier, begun)


def find_attempt(
    files: Files, first: RunRef, staged: Sequence[Staged], begun: datetime | None
) -> RunRef:
    """The newest attempt of a run among the `staged` runs: ID, ID-2, ID-3 ...

    It is a new attempt when the newest one ended incomplete before `begun`. With None there is
    never a new attempt.
    """
    prefix = f"{first.run}-"
    more = [one.ref.run for one in staged if one.ref.run.startswith(prefix)]
    number = max((int(run.removeprefix(prefix)) for run in more), default=1)
    if begun and _is_incomplete(files, _attempt(first, number), begun):
        number += 1
    return _attempt(first, number)


def _attempt(first: RunRef, number: int) -> RunRef:
    return first if number == 1 else first.model_copy(update={"run": f"{first.run}-{number}"})


def _is_incomplete(files: Files, ref: RunRef, moment: datetime) -> bool:
    """True when a run ended before a moment, and a new attempt may get missing verdicts.

    Without requests a new attempt has the same result: local judges and cached replies do not
    change. Missing parts do not count: the same run scores them.
    """
    manifest = Runs(files).find(ref)
    if manifest is None or manifest.finished_at > moment:
        return False
    usage = manifest.usage
    asked = usage.requests or usage.failures or manifest.problems
    if not asked or not any(_has_gaps(metric) for metric in manifest.metrics):
        return False
    parts = ((metric.metric, shard) for metric in manifest.metrics for shard in range(ref.shards))
    complete = (path for part in parts if StoredPart(files, path := ref.scores(*part)).is_whole())
    return any(lacks_verdicts(files, path) for path in complete)


def lacks_verdicts(files: Files, path: str) -> bool:
    """True when a part has rows for which a judge, or one judge of a panel, gave no verdict."""
    return not _WITHOUT_VERDICT.isdisjoint(_unsettled(files, path))


def _has_gaps(summary: Summary) -> bool:
    failed = any(judge.failed for judge in summary.judges)
    return failed or not _WITHOUT_VERDICT.isdisjoint(summary.status)


def find_reusable_run(
    settings: Settings, files: Files, staged: Staged, prints: Mapping[str, str]
) -> Reuse:
    """Find the parts of earlier runs that may be reused, and store the result beside the rows.

    `prints` are the fingerprints of the metrics. Call it before the run is scored.
    """
    chosen = chosen_metrics(settings)
    bases = {
        metric.name: fingerprint(
            __version__,
            prints[metric.name],
            staged.corpus if _depends_on_corpus(settings, metric) else "",
            [],  # where the metrics that share a request once were: their parts are still found
        )
        for metric in chosen
    }
    others = (run for run in staged_runs(files, staged.ref.date) if run.ref.run != staged.ref.run)
    depends_on_all = settings.budget.binds or settings.samples
    runs = [] if depends_on_all else [_reusable_run(files, staged, bases, one) for one in others]
    reuse = Reuse(bases=bases, earlier=tuple(run for run in runs if run)[:_MOST_RUNS])
    save_record(files, staged.ref.beside_rows("reuse"), reuse)
    return reuse


def _depends_on_corpus(settings: Settings, metric: Metric) -> bool:
    """True when a judge or embedder of the metric weighs words by their frequency in the night."""
    judged = bool(metric.prompts) and not all(one.remote for one in settings.panel)
    return judged or (metric.embeds and settings.embeddings.hashed)


def _reusable_run(
    files: Files, staged: Staged, bases: Mapping[str, str], other: Staged
) -> ReusableRun | None:
    """The parts of another run that can be reused; None when there are none."""
    if len(other.digests) != len(staged.digests):
        return None
    same = zip(staged.digests, other.digests, strict=True)
    shards = tuple(shard for shard, (own, earlier) in enumerate(same) if own == earlier)
    earlier_bases = load_reuse(files, other.ref).bases if shards else {}
    metrics = tuple(name for name, base in bases.items() if earlier_bases.get(name) == base)
    return ReusableRun(ref=other.ref, shards=shards, metrics=metrics) if metrics else None


def load_reuse(files: Files, ref: RunRef) -> Reuse:
    """What a run's scores depend on, and the runs it reuses; empty where that is not stored."""
    path, problem = ref.beside_rows("reuse"), "damaged, nothing is reused"
    return find_record(files, path, Reuse, problem) or Reuse()


def reuse_part(files: Files, ref: RunRef, names: Sequence[str], shard: int) -> bool:
    """Copy a part (a family of metrics over a shard) from an earlier run. Returns True if a run
    has it.

    Its notes name that run and contain no usage. A damaged part is not reused.
    """
    for reusable in load_reuse(files, ref).earlier:
        if shard in reusable.shards and set(names) <= set(reusable.metrics):
            try:
                if all(_is_settled(files, reusable.ref.scores(name, shard)) for name in names):
                    _copy_part(files, reusable.ref, ref, names, shard)
                    return True
            except DamagedPart as error:
                log.warning("%s; the part is not reused", error)
    return False


def _is_settled(files: Files, path: str) -> bool:
    """True when a part exists and has all verdicts of all judges."""
    return StoredPart(files, path).is_whole() and not _unsettled(files, path)


def _unsettled(files: Files, path: str) -> set[str]:
    """The statuses of a part's rows that a new attempt may change; `judge_failed` also when one
    judge of a panel failed.
    """
    table = StoredPart(files, path).columns(["status", "failed"])
    statuses: set[str] = set(table["status"].unique().to_pylist()) - _SETTLED
    every_vote = table["failed"].null_count == len(table)
    return statuses if every_vote else statuses | {Status.JUDGE_FAILED.value}


def _copy_part(files: Files, source: RunRef, ref: RunRef, names: Sequence[str], shard: int) -> None:
    kept_notes: dict[str, dict[str, Any]] = {"splits": {}, "verdicts": {}}
    for name in names:
        stored = StoredPart(files, source.scores(name, shard)).notes()
        for kind, counts in kept_notes.items():
            counts |= stored.get(kind, {})
    notes = {"usage": {}, "paid": [], "refused": {}, **kept_notes, "taken_over": source.run}
    for number, name in enumerate(names):
        # As with scored parts, only the file of the first metric has the notes of the family.
        kept = {} if number else notes
        StoredPart(files, source.scores(name, shard)).copy(ref.scores(name, shard), kept)
    log.info("%s, shard %d: reused from run %s", ", ".join(names), shard + 1, source.run)
