"""Reads rows that are passed in Python: paths, dicts, a pandas DataFrame, a dataset."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ragmetrics.config import Settings, file_and_judge
from ragmetrics.errors import InputError
from ragmetrics.logs.inputs import NightInputs, golden_set, log_set
from ragmetrics.logs.log_files import LogSet, is_among
from ragmetrics.storage import same_file


def inputs_of(settings: Settings, rows: Any, folder: Path, limit: int | None) -> NightInputs:
    """The inputs of a run. Rows in memory are written into a folder as a log.

    Raises InputError for rows of an unknown type.
    """
    if isinstance(rows, str | Path):
        rows = [rows]
    if isinstance(rows, list | tuple) and rows and isinstance(rows[0], str | Path):
        logs = tuple(log_set(settings, str(place)) for place in rows)
    else:
        logs = (_written(settings, _dicts(rows), folder),)
    return NightInputs(logs, golden_set(settings), limit=limit)


def overwrites(path: Path, settings: Settings, inputs: NightInputs) -> bool:
    """True when writing to a path would overwrite a log, the golden set or a used recording."""
    judges = [one.name for one in settings.panel if one.name.startswith("recorded:")]
    recordings = [file_and_judge(name.removeprefix("recorded:"))[0] for name in judges]
    sets = [*inputs.logs, *([inputs.golden] if inputs.golden else [])]
    return any(same_file(path, one) for one in recordings) or any(
        is_among(path, one.files, one.infos) for one in sets
    )


def _dicts(rows: Any) -> Iterable[Any]:
    if hasattr(rows, "to_pandas"):  # ragas's EvaluationDataset and Hugging Face's Dataset
        rows = rows.to_pandas()
    table = _pandas_attribute("DataFrame")
    if table and isinstance(rows, table):
        named = rows.index.name and rows.index.name not in rows  # such as Phoenix's span ids
        records: list[Any] = (rows.reset_index() if named else rows).to_dict("records")
        return records
    if isinstance(rows, Iterable) and not isinstance(rows, Mapping | bytes):
        return rows
    raise InputError(f"rows: expected a path, dicts or a table, not {type(rows).__name__}")


def _written(settings: Settings, rows: Iterable[Any], folder: Path) -> LogSet:
    """Write rows in memory as a log, so that there is one way to read rows."""
    ours = settings.preset in (None, "ragas") and "id" not in settings.columns
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        for number, row in enumerate(rows):
            if ours and isinstance(row, Mapping) and row.get("id") is None:
                row = {**row, "id": str(number)}
            file.write(json.dumps(row, default=_plain) + "\n")
    return log_set(settings, str(folder / "rows.jsonl"))


def _plain(value: Any) -> Any:
    if any(value is _pandas_attribute(name) for name in ("NaT", "NA")):
        return None
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _pandas_attribute(name: str) -> Any:
    """An attribute of pandas; None if pandas is not imported: then no value can come from it."""
    return getattr(sys.modules.get("pandas"), name, None)
