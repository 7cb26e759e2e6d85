"""Reuse: a run takes over what an earlier run of the same night has scored of the same rows.

rows/dt=DATE/run=ID/reuse.json    what the run's scores depend on, and which runs it may take from

A part is taken over where the rows of its shard are the same, byte by byte, and so is all else
that its metrics depend on: version, metric, and judge or embedder where they ask one. A judge that
weighs words by how common they are in the whole night gives other scores as soon as one row is
added: of its metrics nothing is taken over. Nor is a part with rows that got no verdict, which may
have better luck now, nor anything under a budget, which shares out what all rows may cost, or of a
sample, which is drawn from all rows.

A night with nothing new is the same run again, however often it is run; but where that run ended
with rows without a verdict it is another attempt, a run of its own: ID-2, ID-3 and so on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import date, datetime

from pydantic import Field, ValidationError

from ragmetrics.config import Settings
from ragmetrics.judges import fingerprint
from ragmetrics.metrics import Metric
from ragmetrics.model import UNSETTLED, Record, Status, Summary, explain_validation_error
from ragmetrics.scoring.metric_choice import chosen_metrics
from ragmetrics.scoring.staging import Staged, find_staged
from ragmetrics.storage import (
    DamagedPart,
    Files,
    RunRef,
    copy_part,
    find_manifest,
    is_whole,
    read_columns,
    read_notes,
)
from ragmetrics.version import __version__

log = logging.getLogger(__name__)

_MOST_RUNS = 5
_SETTLED = {Status.SCORED.value, Status.NOT_APPLICABLE.value}
_WITHOUT_VERDICT = {one.value for one in UNSETTLED}


class ReusableRun(Record):
    """A run of the same night, and what of it this one may take over."""

    ref: RunRef
    shards: tuple[int, ...]
    """Those with the same rows."""
    metrics: tuple[str, ...]
    """Those whose scores depend on nothing that changed."""


class Reuse(Record):
    """What a run's scores depend on beside its rows, and the earlier runs, newest first."""

    bases: dict[str, str] = Field(default_factory=dict)
    """By metric: a digest of all that its scores depend on, but the rows."""
    earlier: tuple[ReusableRun, ...] = ()


def staged_runs(files: Files, day: date) -> list[Staged]:
    """The runs of a night that were staged, the newest first."""
    folder = f"rows/dt={day.isoformat()}"
    folders = (info.path.removesuffix("/staged.json") for info in files.below(folder)
               if info.path.endswith("/staged.json"))  # fmt: skip
    found = (staged for one in folders if (staged := find_staged(files, one)))
    return sorted(found, key=lambda one: (one.started_at, one.ref.run), reverse=True)


def find_attempt(
    files: Files, first: RunRef, staged: Sequence[Staged], begun: datetime | None
) -> RunRef:
    """The newest attempt at a run, of those that were `staged`: the first, ID-2, ID-3 ...

    It is a new one where the newest ended before `begun`, and ended short; None begins none.
    """
    prefix = f"{first.run}-"
    more = [one.ref.run for one in staged if one.ref.run.startswith(prefix)]
    number = max((int(run.removeprefix(prefix)) for run in more), default=1)
    if begun and _ended_short(files, _attempt(first, number), begun):
        number += 1
    return _attempt(first, number)


def _attempt(first: RunRef, number: int) -> RunRef:
    return first if number == 1 else first.model_copy(update={"run": f"{first.run}-{number}"})


def _ended_short(files: Files, ref: RunRef, moment: datetime) -> bool:
    """Whether a run ended before a moment, and parts of it have rows that may get a verdict now.

    None may where nobody was asked: who computes here, or has kept the replies, says the same
    again. Parts that are missing are no reason: the same run scores them.
    """
    manifest = find_manifest(files, ref)
    if manifest is None or manifest.finished_at > moment:
        return False
    usage = manifest.usage
    asked = usage.requests or usage.failures or manifest.problems
    if not asked or not any(_has_gaps(one) for one in manifest.metrics):
        return False
    places = ((one.metric, shard) for one in manifest.metrics for shard in range(ref.shards))
    there = (path for place in places if is_whole(files, path := ref.scores(*place)))
    return any(lacks_verdicts(files, path) for path in there)


def lacks_verdicts(files: Files, path: str) -> bool:
    """Whether a part has rows that a judge, or one of a panel, was asked of and gave no verdict."""
    return not _WITHOUT_VERDICT.isdisjoint(_unsettled(files, path))


def _has_gaps(summary: Summary) -> bool:
    failed = any(judge.failed for judge in summary.judges)
    return failed or not _WITHOUT_VERDICT.isdisjoint(summary.status)


def find_reusable_run(
    settings: Settings, files: Files, staged: Staged, prints: Mapping[str, str]
) -> Reuse:
    """Find what may be taken over from earlier runs of the night, and keep it beside the rows.

    `prints` are the fingerprints of the metrics. To be called before the run is scored.
    """
    chosen = chosen_metrics(settings)
    bases = {
        metric.name: fingerprint(
            __version__,
            prints[metric.name],
            staged.corpus if _weighs(settings, metric) else "",
            _asked_with(settings, metric, chosen),
        )
        for metric in chosen
    }
    others = (one for one in staged_runs(files, staged.ref.date) if one.ref.run != staged.ref.run)
    shared_out = settings.budget.binds or settings.samples
    offers = [] if shared_out else [_offer(files, staged, bases, one) for one in others]
    reuse = Reuse(bases=bases, earlier=tuple(one for one in offers if one)[:_MOST_RUNS])
    files.write(_path(staged.ref), reuse.model_dump_json(indent=1).encode())
    return reuse


def _weighs(settings: Settings, metric: Metric) -> bool:
    """Whether somebody who counts the night's words has a part in the metric."""
    judged = bool(metric.prompts) and not all(one.remote for one in settings.panel)
    return judged or (metric.embeds and settings.embeddings.name == "hashed")


def _asked_with(settings: Settings, metric: Metric, chosen: Sequence[Metric]) -> list[str]:
    """The metrics whose requests go in one with a metric's, itself too; none where it goes alone.

    A verdict may be another one in other company.
    """
    fused = settings.fuse is not None and any(one.remote for one in settings.panel)
    if not (fused and _is_fusible(metric)):
        return []
    return sorted(one.digest for one in chosen if _is_fusible(one))


def _is_fusible(metric: Metric) -> bool:
    return any(not prompt.verbatim for prompt in metric.prompts)


def _offer(
    files: Files, staged: Staged, bases: Mapping[str, str], other: Staged
) -> ReusableRun | None:
    """What another run has that can be taken over; None where that is nothing."""
    if len(other.digests) != len(staged.digests):
        return None
    same = zip(staged.digests, other.digests, strict=True)
    shards = tuple(shard for shard, (mine, its) in enumerate(same) if mine == its)
    theirs = _load(files, other.ref).bases if shards else {}
    metrics = tuple(name for name, base in bases.items() if theirs.get(name) == base)
    return ReusableRun(ref=other.ref, shards=shards, metrics=metrics) if metrics else None


def _path(ref: RunRef) -> str:
    return f"{ref.folder('rows')}/reuse.json"


def _load(files: Files, ref: RunRef) -> Reuse:
    data = files.find(_path(ref))
    try:
        return Reuse() if data is None else Reuse.model_validate_json(data)
    except ValidationError as error:
        uri = files.uri(_path(ref))
        log.error(
            "%s cannot be read, nothing is taken over by it: %s",
            uri,
            explain_validation_error(error),
        )
        return Reuse()


def take_over(files: Files, ref: RunRef, names: Sequence[str], shard: int) -> bool:
    """Bring a part, a family of metrics over a shard, from an earlier run; whether there was one.

    Its notes say from which, and that nothing was asked for it. One that is damaged is left.
    """
    for one in _load(files, ref).earlier:
        if shard in one.shards and set(names) <= set(one.metrics):
            try:
                if all(_is_settled(files, one.ref.scores(name, shard)) for name in names):
                    _bring(files, one.ref, ref, names, shard)
                    return True
            except DamagedPart as error:
                log.warning("%s, so it is not taken over", error)
    return False


def _is_settled(files: Files, path: str) -> bool:
    """Whether a part is there, and every judge had a verdict on every row that it was asked of."""
    return is_whole(files, path) and not _unsettled(files, path)


def _unsettled(files: Files, path: str) -> set[str]:
    """The statuses of a part's rows that another time may change; `judge_failed` where one judge
    of a panel failed.
    """
    table = read_columns(files, path, ["status", "failed"])
    found: set[str] = set(table["status"].unique().to_pylist()) - _SETTLED
    every_vote = table["failed"].null_count == len(table)
    return found if every_vote else found | {Status.JUDGE_FAILED.value}


def _bring(files: Files, source: RunRef, ref: RunRef, names: Sequence[str], shard: int) -> None:
    splits: dict[str, int] = {}
    for name in names:
        splits |= read_notes(files, source.scores(name, shard)).get("splits", {})
    notes = {"usage": {}, "paid": [], "refused": {}, "splits": splits, "taken_over": source.run}
    for number, name in enumerate(names):
        # As with scored parts, the family's notes stand once, with its first metric.
        told = {} if number else notes
        copy_part(files, source.scores(name, shard), ref.scores(name, shard), told)
    log.info("%s, shard %d: taken over from run %s", ", ".join(names), shard + 1, source.run)


__all__ = [
    "ReusableRun",
    "Reuse",
    "find_attempt",
    "find_reusable_run",
    "lacks_verdicts",
    "staged_runs",
    "take_over",
]
