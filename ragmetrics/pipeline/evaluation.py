"""`evaluate`: scores rows from files or from memory, and returns pandas tables."""

from __future__ import annotations

import asyncio
import json
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

from ragmetrics.config import (
    Judged,
    MetricChoice,
    Settings,
    load_settings,
    make_settings,
    with_overrides,
)
from ragmetrics.errors import InputError
from ragmetrics.judges import Corpus, Recorder
from ragmetrics.logs import NightInputs, inputs_of, overwrites
from ragmetrics.people import with_people
from ragmetrics.records import UNSETTLED, Manifest, Source, Summary, Usage
from ragmetrics.scoring import (
    Estimate,
    Staged,
    choose_rows,
    chosen_metrics,
    estimate_run,
    judge_info,
    list_parts,
    plan_run,
    score_parts,
    stage_run,
    summarise_run,
)
from ragmetrics.storage import AskedWays, Files, LearnedJudges, RunRef, StoredPart, open_store

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[str, int, int], None]
_NO_NIGHT = date(1970, 1, 1)
_FIGURES = ("mean", "low", "high", "scored", "questions", "status", "spread", "agreement")
"""Fields of a metric's summary that every output of a result has."""
_COUNTS = ("rows", "quarantined", "skipped", "dropped", "note")
_AS_STORED = (
    *("usage", "usage_by_judge", "usage_by_metric", "budget", "sample", "labels"),
    *("problems", "changed_parameters", "splits"),
)
"""Fields of the manifest that `ragmetrics score --json` has as they are."""


class Result:
    """Scored rows. The scores are in a temporary folder that is removed with this object."""

    def __init__(self, files: Files, staged: Staged, manifest: Manifest, folder: Any) -> None:
        self._files, self._ref, self._folder = files, staged.ref, folder
        self.manifest = manifest
        finalize(self, folder.cleanup)

    def __repr__(self) -> str:
        """Rows and means, as `Result(200 rows: context_recall 0.812, hit_rate -)`."""
        means = (
            f"{metric.metric} {'-' if metric.mean is None else format(metric.mean, '.3f')}"
            for metric in self.manifest.metrics
        )
        return f"Result({self.manifest.source.rows:,} rows: {', '.join(means)})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the rows, and one line per metric."""
        source = self.manifest.source
        lost = f", {source.quarantined:,} quarantined" if source.quarantined else ""
        table = self.summary().drop(columns=["spread", "agreement"]).round(3)
        return f"<p>{source.rows:,} rows{lost}</p>{table.to_html(escape=True, na_rep='')}"

    @property
    def files(self) -> Files:
        """The store with the rows and scores."""
        return self._files

    @property
    def quarantined(self) -> int:
        """Rows that could not be read. No number includes them."""
        return self.manifest.source.quarantined

    @property
    def usage(self) -> Usage:
        """Requests to judges and embedders over a network, and their cost."""
        return self.manifest.usage

    def summary(self) -> pd.DataFrame:
        """One line per metric: mean, interval, scored rows, questions, rows by status."""
        import pandas as pd

        records = [
            {"metric": metric.metric, **{name: getattr(metric, name) for name in _FIGURES}}
            for metric in self.manifest.metrics
        ]
        return pd.DataFrame(records).set_index("metric")

    def scores(self) -> pd.DataFrame:
        """One line per row and metric: id, metric, value, status, reason, details, tags."""
        import pandas as pd

        return pd.DataFrame(list(self.records()))

    def records(self) -> Iterable[dict[str, Any]]:
        """The lines of `scores`, one by one."""
        for metric in self.manifest.metrics:
            yield from _records(self._files, self._ref, metric.metric)

    def unscored(self) -> list[str]:
        """Metrics whose judge gave no usable verdict on any row."""
        return [
            metric.metric
            for metric in self.manifest.metrics
            if not metric.scored and set(metric.status) & set(UNSETTLED)
        ]

    def as_json(self) -> dict[str, Any]:
        """The output of `ragmetrics score --json`."""
        manifest = self.manifest
        source = manifest.source.model_dump(include={*_COUNTS, "broken"})
        return {
            **{name: source[name] for name in _COUNTS},
            "broken_files": source["broken"],
            "judge": manifest.judge.model_dump(),
            "metrics": {metric.metric: _metric_as_json(metric) for metric in manifest.metrics},
            **manifest.model_dump(include={*_AS_STORED}),
        }


def _metric_as_json(metric: Summary) -> dict[str, Any]:
    shown = {*_FIGURES, "not_applicable", "unanswered", "sample", "judges"}
    people = metric.people.model_dump(mode="json") if metric.people else None
    return {**metric.model_dump(include=shown, exclude={"sample": {"bins"}}), "people": people}


def evaluate(
    rows: Any,
    metrics: Sequence[MetricChoice] | MetricChoice | None = None,
    judge: Judged = None,
    *,
    model: str | None = None,
    base_url: str | None = None,
    golden: str | None = None,
    preset: str | None = None,
    budget: Mapping[str, Any] | None = None,
    settings: Settings | str | Path | None = None,
    record: str | Path | None = None,
    limit: int | None = None,
    store: str | None = None,
    progress: Progress | None = None,
    until: datetime | None = None,
) -> Result:
    """Score rows: a path (or several), dicts, a pandas DataFrame, a ragas or Hugging Face dataset.

    `metrics` are names, or `{name: parameters}`, or one of these alone; the default are the default
    metrics. `judge` is `lexical` by default; a list of judges is a panel. `settings` has all other
    settings of `ragmetrics.yaml`, or is the path of such a file; the other arguments override it.
    `budget` is a mapping such as `{"max_requests": 1000}`.
    `preset` names the tool that wrote the rows: `ragas`, `openinference`, `langfuse`, ...
    `record` names a JSONL file for the judge's replies; `judge="recorded:PATH"` replays them.
    `store` caches the replies of judges over a network and reuses those of earlier runs. Without
    it nothing is cached. After `until` no request is sent, and the rows answered so far are scored.
    It works inside a running event loop too, as in a notebook.
    Rows that cannot be read are quarantined: `Result.quarantined` counts them, and RowsLost warns
    where they are more than the share `alerts: max_quarantined`.
    Raises InputError for invalid rows, and JudgeRefused for a judge that accepts no requests.
    """
    chosen = settings_of(
        settings, metrics, judge, model, base_url, golden, budget=budget, preset=preset
    )
    folder = tempfile.TemporaryDirectory(prefix="ragmetrics-")
    try:
        inputs = inputs_of(chosen, rows, Path(folder.name), limit)
        if record is not None and overwrites(Path(record), chosen, inputs):
            raise InputError(f"recording {record}: is one of the inputs")
        cache = Files(store, chosen.storage_options) if store else None
        chosen = temporary(chosen, folder.name)
        staged = score_inputs(chosen, inputs, cache, record=record, progress=progress, until=until)
        files = open_store(chosen)
        manifest, _ = summarise_run(chosen, files, staged, datetime.now(UTC))
        manifest = with_people(chosen, files, manifest, dated=False)
        if lost := RowsLost.sentence(chosen, manifest.source):
            warnings.warn(lost, RowsLost, stacklevel=2)
    except BaseException:
        folder.cleanup()
        raise
    return Result(files, staged, manifest, folder)


class RowsLost(UserWarning):
    """A large share of the rows is quarantined."""

    @staticmethod
    def sentence(settings: Settings, source: Source) -> str:
        """A sentence where the share of quarantined rows is above `alerts: max_quarantined`."""
        tolerated = source.quarantined_share <= settings.alerts.limit("quarantine")
        return "" if tolerated else source.quarantined_text


async def aevaluate(rows: Any, *args: Any, **kwargs: Any) -> Result:
    """`evaluate` for asynchronous code: it does not block the event loop."""
    return await asyncio.to_thread(evaluate, rows, *args, **kwargs)


def estimate(
    rows: Any,
    metrics: Sequence[MetricChoice] | MetricChoice | None = None,
    judge: Judged = None,
    *,
    model: str | None = None,
    base_url: str | None = None,
    golden: str | None = None,
    preset: str | None = None,
    budget: Mapping[str, Any] | None = None,
    settings: Settings | str | Path | None = None,
    limit: int | None = None,
    store: str | None = None,
) -> Estimate:
    """Estimate the requests, tokens and cost of `evaluate`. Nothing is sent; no key is needed.

    `store` has the cached replies of earlier runs, which are not requested again.
    Raises InputError for invalid rows, and SettingsError when a budget lacks a price.
    """
    chosen = settings_of(
        settings, metrics, judge, model, base_url, golden, budget=budget, preset=preset
    )
    cache = Files(store, chosen.storage_options) if store else None
    with tempfile.TemporaryDirectory(prefix="ragmetrics-") as folder:
        inputs = inputs_of(chosen, rows, Path(folder), limit)
        chosen = temporary(chosen, folder)
        bring_judges(chosen, cache)
        ref = plan_run(chosen, _NO_NIGHT, inputs, "")
        _staged(chosen, ref, inputs)
        return estimate_run(chosen, open_store(chosen), ref, cache)


def bring_judges(settings: Settings, cache: Files | None) -> None:
    """Copy the learned judges to the settings' store, if the settings use one, and how judges of
    other servers were asked.
    """
    if cache and any(one.remote for one in settings.panel):
        AskedWays(cache).copy_to(open_store(settings))
    learned = any(one.kind.fitted for one in settings.panel)
    cheap = settings.sample is not None and settings.sample.learns
    if cache and (learned or cheap):
        LearnedJudges(cache).copy_to(open_store(settings))


def temporary(settings: Settings, folder: str) -> Settings:
    """The settings with a store in a temporary folder."""
    store = str(Path(folder) / "store")
    return settings.model_copy(update={"store": store, "storage_options": {}})


def settings_of(
    settings: Settings | str | Path | None,
    metrics: Sequence[MetricChoice] | MetricChoice | None,
    judge: Judged,
    model: str | None,
    base_url: str | None,
    golden: str | None,
    *,
    budget: Mapping[str, Any] | None = None,
    preset: str | None = None,
) -> Settings:
    """The settings, or the default settings, with overrides. Raises InputError for an unknown
    metric.
    """
    if isinstance(settings, str | Path):
        settings = load_settings(settings)
    chosen = with_overrides(settings or make_settings({}), judge, model, base_url)
    chosen = with_overrides(chosen, metrics=metrics, golden=golden, budget=budget, preset=preset)
    chosen_metrics(chosen)
    return chosen


def score_inputs(
    settings: Settings,
    inputs: NightInputs,
    cache: Files | None,
    *,
    record: str | Path | None = None,
    progress: Progress | None = None,
    weighed_by: Corpus | None = None,
    until: datetime | None = None,
) -> Staged:
    """Stage and score rows in the settings' store. `cache` is the store with the reply cache.

    `weighed_by` are word counts in place of the rows' own. After `until` no request is sent. Raises
    InputError when no row can be read, and the first error of parts that could not be scored.
    """
    bring_judges(settings, cache)
    info, embedder = judge_info(settings)
    ref = plan_run(settings, _NO_NIGHT, inputs, f"{info.identity}/{embedder}")
    staged = _staged(settings, ref, inputs, weighed_by)
    choose_rows(settings, ref, cache)
    todo = list_parts(settings, staged)
    with Recorder(record) as recorder:
        note = recorder.note if record is not None else None
        done = _part_counter(progress, len(todo))
        problems = score_parts(settings, staged, todo, note, done, cache, until)
    for problem in problems:
        raise problem
    return staged


def _staged(
    settings: Settings, ref: RunRef, inputs: NightInputs, weighed_by: Corpus | None = None
) -> Staged:
    staged = stage_run(settings, ref, inputs, datetime.now(UTC), weighed_by)
    if staged.source.problem:
        raise InputError(staged.source.why_no_rows)
    return staged


def _part_counter(progress: Progress | None, parts: int) -> Callable[[Sequence[str]], None]:
    """A callback that reports each finished part and how many are finished."""
    numbers = count(1)

    def done(family: Sequence[str]) -> None:
        if progress:
            progress(", ".join(family), next(numbers), parts)

    return done


def _records(files: Files, ref: RunRef, metric: str) -> Iterable[dict[str, Any]]:
    for shard in range(ref.shards):
        for record in StoredPart(files, ref.scores(metric, shard)).records():
            yield {
                "id": record["id"],
                "metric": metric,
                "value": record["value"],
                "status": record["status"],
                "reason": record["reason"] or "",
                "details": json.loads(record["details"]) if record["details"] else {},
                "tags": dict(record["tags"]),
            }
