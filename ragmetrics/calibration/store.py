"""Calibrations in the store.

calibrations/set=NAME/judge=FINGERPRINT/TIME.parquet    every verdict beside its label
                                        TIME.json       the record, written last
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from ragmetrics.calibration.units import Unit
from ragmetrics.errors import InputError
from ragmetrics.model import Calibration, Status
from ragmetrics.storage import Files, find_all, parse_record, reading_part

_RECORD = re.compile(r"^calibrations/set=[^/]+/judge=[^/]+/[^/]+\.json$")
_NUMBER = re.compile(r" #(\d+)$")
_SCHEMA = pa.schema(
    [
        ("metric", pa.string()),
        ("id", pa.string()),
        ("question", pa.string()),
        ("unit", pa.string()),
        ("content", pa.string()),
        ("label", pa.float64()),
        ("verdict", pa.float64()),
        ("strength", pa.float64()),
        ("status", pa.string()),
        ("row", pa.string()),
    ]
)


def save_calibration(
    files: Files, calibration: Calibration, units: Mapping[str, Sequence[Unit]]
) -> None:
    """Store a calibration. Its record is written last."""
    records = [
        {"metric": metric, **{name: getattr(unit, name) for name in _SCHEMA.names[1:]}}
        for metric, found in units.items()
        for unit in found
    ]
    sink = BytesIO()
    pq.write_table(pa.Table.from_pylist(records, _SCHEMA), sink, compression="zstd")
    path = f"calibrations/{place_of(calibration)}"
    files.write(f"{path}.parquet", sink.getvalue())
    files.write(f"{path}.json", calibration.model_dump_json(indent=1).encode())


def load_calibrations(
    files: Files,
    *,
    name: str | None = None,
    judge: str | None = None,
    newest: int | None = None,
) -> list[Calibration]:
    """The calibrations of a store, oldest first.

    `name` and `judge` select one set or judge; `newest` limits the number for each set and
    fingerprint. A record that cannot be read is logged and left out.
    """
    folder = f"calibrations/set={name}" if name else "calibrations"
    pairs: dict[str, list[str]] = {}
    for info in files.below(folder):
        if _RECORD.match(info.path):
            pairs.setdefault(info.path.rpartition("/")[0], []).append(info.path)
    paths = [path for own in pairs.values() for path in (own[-newest:] if newest else own)]
    read = zip(paths, find_all(files, paths), strict=True)
    # A record may have been removed since the listing.
    problem = "not a calibration and is left out"
    parsed = (parse_record(files, path, data, Calibration, problem) for path, data in read)
    found = [one for one in parsed if one]
    chosen = [one for one in found if judge is None or one.judge.name == judge]
    return sorted(chosen, key=lambda one: (one.at, one.name, one.judge.name))


def load_units(files: Files, calibration: Calibration) -> dict[str, list[Unit]]:
    """Every verdict of a stored calibration, by metric. Raises InputError where it is not stored,
    StoreError where it is damaged.
    """
    path = f"calibrations/{place_of(calibration)}.parquet"
    data = files.find(path)
    if data is None:
        raise InputError(f"the calibration of {calibration.name} at {calibration.at} is not stored")
    units: dict[str, list[Unit]] = {}
    with reading_part(files, path):
        for record in pq.read_table(BytesIO(data)).to_pylist():
            metric = record.pop("metric")
            unit = Unit(**{**record, "status": Status(record["status"])})
            units.setdefault(metric, []).append(unit)
    return units


def place_of(calibration: Calibration) -> str:
    """The name of a calibration in the store. Equal judges of a panel have separate names: the
    second judge's name ends in `#2`.
    """
    moment = calibration.at.strftime("%Y%m%dT%H%M%S.%fZ")
    judge, number = calibration.judge, _NUMBER.search(calibration.judge.name)
    again = f"-{number[1]}" if number else ""
    return f"set={calibration.name}/judge={judge.fingerprint}/{moment}{again}"
