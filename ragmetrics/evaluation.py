"""The Python entry: score rows from anywhere, get pandas tables back."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from weakref import finalize

import pandas as pd

from ragmetrics.errors import InputError
from ragmetrics.judges.recorded import Recorder, file_and_judge
from ragmetrics.night import parts
from ragmetrics.protocol import Status
from ragmetrics.publish import summarise_run
from ragmetrics.records import Manifest
from ragmetrics.registry import chosen_metrics
from ragmetrics.score import judge_info, score_part
from ragmetrics.settings import (
    Judged,
    MetricChoice,
    Settings,
    judged_by,
    make_settings,
    with_preset,
)
from ragmetrics.stage import Inputs, Staged, golden_set, log_set, open_store, plan, stage
from ragmetrics.store.files import Files, same_file
from ragmetrics.store.logs import LogSet, is_among
from ragmetrics.store.parts import RunRef, read_records

Progress = Callable[[str, int, int], None]


class Result:
    """Scored rows. The scores lie in a temporary folder that goes with this object."""

    def __init__(self, files: Files, staged: Staged, manifest: Manifest, folder: Any) -> None:
        self._files, self._ref, self._folder = files, staged.ref, folder
        self.manifest = manifest
        finalize(self, folder.cleanup)

    def summary(self) -> pd.DataFrame:
        """One line per metric: mean, interval, rows scored, questions, count by status."""
        records = [
            {
                "metric": one.metric,
                "mean": one.mean,
                "low": one.low,
                "high": one.high,
                "scored": one.scored,
                "questions": one.questions,
                "status": one.status,
                "spread": one.spread,
                "agreement": one.agreement,
            }
            for one in self.manifest.metrics
        ]
        return pd.DataFrame(records).set_index("metric")

    def scores(self) -> pd.DataFrame:
        """One line per row and metric: id, metric, value, status, reason, details, tags."""
        return pd.DataFrame(list(self.records()))

    def records(self) -> Iterable[dict[str, Any]]:
        """The lines of `scores`, one by one."""
        for one in self.manifest.metrics:
            yield from _records(self._files, self._ref, one.metric)

    def unscored(self) -> list[str]:
        """Metrics whose judge was asked and gave no usable verdict on any row."""
        return [
            one.metric
            for one in self.manifest.metrics
            if not one.scored and set(one.status) & {Status.UNREADABLE, Status.JUDGE_FAILED}
        ]

    def as_json(self) -> dict[str, Any]:
        """What `ragmetrics score --json` prints."""
        manifest = self.manifest
        return {
            "rows": manifest.source.rows,
            "quarantined": manifest.source.quarantined,
            "skipped": manifest.source.skipped,
            "broken_files": [one.model_dump() for one in manifest.source.broken],
            "judge": manifest.judge.model_dump(),
            "metrics": {
                one.metric: {
                    "mean": one.mean,
                    "low": one.low,
                    "high": one.high,
                    "scored": one.scored,
                    "questions": one.questions,
                    "status": one.status,
                    "spread": one.spread,
                    "agreement": one.agreement,
                    "judges": [judge.model_dump() for judge in one.judges],
                }
                for one in manifest.metrics
            },
            "usage": manifest.usage.model_dump(),
            "usage_by_judge": {
                name: usage.model_dump() for name, usage in manifest.usage_by_judge.items()
            },
            "problems": manifest.problems,
            "splits": manifest.splits,
        }


def evaluate(
    rows: Any,
    metrics: Sequence[MetricChoice] | None = None,
    judge: Judged = None,
    *,
    model: str | None = None,
    base_url: str | None = None,
    golden: str | None = None,
    preset: str | None = None,
    settings: Settings | None = None,
    record: str | Path | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Score rows: a path (or several), dicts, a pandas DataFrame, a ragas or Hugging Face dataset.

    `metrics` are names, or `{name: parameters}`; without any, all of the defaults. `judge` is
    `embedded` where nothing says otherwise; a list of judges is a panel. `settings` brings
    everything else that `ragmetrics.yaml` may say; the other arguments go before it.
    `preset` names the tool that wrote the rows: `ragas`, `openinference`, `langfuse`, ...
    `record` names a JSONL file for the judge's replies, to be played by `judge="recorded:PATH"`.
    Works inside a running event loop too, as in a notebook.
    Raises InputError for rows that are none, JudgeRefused for a judge that cannot be asked.
    """
    chosen = _settings(settings, metrics, judge, model, base_url, golden)
    chosen = with_preset(chosen, preset)
    folder = tempfile.TemporaryDirectory(prefix="ragmetrics-")
    try:
        inputs = _inputs(chosen, rows, Path(folder.name), limit)
        if record is not None and _overwrites(Path(record), chosen, inputs):
            raise InputError(f"recording {record}: is one of the files that are read")
        chosen = chosen.model_copy(
            update={"store": str(Path(folder.name) / "store"), "storage_options": {}}
        )
        staged = _outside_loop(lambda: _run(chosen, inputs, record, progress))
        files = open_store(chosen)
        manifest, _ = summarise_run(chosen, files, staged, datetime.now(UTC))
    except BaseException:
        folder.cleanup()
        raise
    return Result(files, staged, manifest, folder)


async def aevaluate(rows: Any, *args: Any, **kwargs: Any) -> Result:
    """`evaluate` for code that is asynchronous itself: the event loop goes on meanwhile."""
    return await asyncio.to_thread(evaluate, rows, *args, **kwargs)


def _settings(
    settings: Settings | None,
    metrics: Sequence[MetricChoice] | None,
    judge: Judged,
    model: str | None,
    base_url: str | None,
    golden: str | None,
) -> Settings:
    settings = settings or make_settings({})
    settings = judged_by(settings, judge, model, base_url)
    update: dict[str, Any] = {}
    if metrics is not None:
        update["metrics"] = tuple(metrics)
    if golden is not None:
        update["golden"] = golden
    settings = settings.model_copy(update=update)
    chosen_metrics(settings)
    return settings


def _inputs(settings: Settings, rows: Any, folder: Path, limit: int | None) -> Inputs:
    if isinstance(rows, str | Path):
        rows = [rows]
    if isinstance(rows, list | tuple) and rows and isinstance(rows[0], str | Path):
        logs = tuple(log_set(settings, str(place)) for place in rows)
    else:
        logs = (_written(settings, _dicts(rows), folder),)
    return Inputs(logs, golden_set(settings), limit=limit)


def _overwrites(path: Path, settings: Settings, inputs: Inputs) -> bool:
    """Whether writing to a path would destroy a log, the golden set or a recording played."""
    judges = [one.name for one in settings.panel if one.name.startswith("recorded:")]
    played = [file_and_judge(name.removeprefix("recorded:"))[0] for name in judges]
    sets = [*inputs.logs, *([inputs.golden] if inputs.golden else [])]
    return any(same_file(path, one) for one in played) or any(
        is_among(path, one.files, one.infos) for one in sets
    )


def _dicts(rows: Any) -> Iterable[Any]:
    if hasattr(rows, "to_pandas"):  # ragas's EvaluationDataset and Hugging Face's Dataset
        rows = rows.to_pandas()
    if isinstance(rows, pd.DataFrame):
        named = rows.index.name and rows.index.name not in rows  # as Phoenix's span ids are
        return (rows.reset_index() if named else rows).to_dict("records")
    if isinstance(rows, Iterable) and not isinstance(rows, Mapping | bytes):
        return rows
    raise InputError(f"rows: expected a path, dicts or a table, not {type(rows).__name__}")


def _written(settings: Settings, rows: Iterable[Any], folder: Path) -> LogSet:
    """Rows of this process as a log, so that there is one way to read them."""
    ours = settings.preset in (None, "ragas") and "id" not in settings.columns
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        for number, row in enumerate(rows):
            if ours and isinstance(row, Mapping) and row.get("id") is None:
                row = {**row, "id": str(number)}
            file.write(json.dumps(row, default=_plain) + "\n")
    return log_set(settings, str(folder / "rows.jsonl"))


def _plain(value: Any) -> Any:
    if value is pd.NaT or value is pd.NA:
        return None
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _outside_loop(work: Callable[[], Staged]) -> Staged:
    """Run in a thread of its own where this one has an event loop at work already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def _run(
    settings: Settings, inputs: Inputs, record: str | Path | None, progress: Progress | None
) -> Staged:
    info, embedder = judge_info(settings)
    day = date(1970, 1, 1)  # a single evaluation has no night
    ref = plan(settings, day, inputs, f"{info.fingerprint}/{embedder}")
    staged = stage(settings, ref, inputs, datetime.now(UTC))
    if staged.source.problem:
        raise InputError(_nothing(staged))
    todo = parts(settings, staged)
    with Recorder(record) as recorder:
        for done, (family, shard) in enumerate(todo, 1):
            score_part(settings, ref, family, shard, recorder.note)
            if progress:
                progress(", ".join(family), done, len(todo))
    return staged


def _records(files: Files, ref: RunRef, metric: str) -> Iterable[dict[str, Any]]:
    for shard in range(ref.shards):
        for record in read_records(files, ref.scores(metric, shard)):
            yield {
                "id": record["id"],
                "metric": metric,
                "value": record["value"],
                "status": record["status"],
                "reason": record["reason"] or "",
                "details": json.loads(record["details"]) if record["details"] else {},
                "tags": dict(record["tags"]),
            }


def _nothing(staged: Staged) -> str:
    source = staged.source
    text = source.problem or ""
    if source.broken:
        text += f"; {source.broken[0].file}: {source.broken[0].reason}"
    elif source.reasons:
        reason, count = next(iter(source.reasons.items()))
        text += f"; {source.quarantined:,} quarantined, most often: {reason} ({count:,})"
    elif source.skipped:
        reason, count = next(iter(source.skipped.items()))
        text += f"; most often skipped: {reason} ({count:,})"
    return text
