"""Calibrations in the store, and the drift between them. Each comparison is stored too.

calibrations/set=NAME/judge=FINGERPRINT/TIME.parquet        every verdict beside its label
                                        TIME.json           the record, written last
calibrations/drift/set=NAME/judge=FINGERPRINT/TIME.json     drift to that calibration
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from ragmetrics.errors import InputError, StoreError
from ragmetrics.metrics import label_targets
from ragmetrics.people.calibration.drift import compare_last
from ragmetrics.people.calibration.units import Unit
from ragmetrics.records import (
    Calibration,
    Drift,
    JudgeInfo,
    MetricDrift,
    Status,
    current_judge_name,
)
from ragmetrics.storage import Files, StoredPart, find_record, note_damage, parse_record

_RECORD = re.compile(r"^calibrations/set=[^/]+/judge=[^/]+/[^/]+\.json$")
_NUMBER = re.compile(r" #(\d+)$")
PART_SCHEMA = pa.schema(
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
log = logging.getLogger(__name__)
STEPS = 30
"""Newest calibrations of one set and judge that are compared, each with those before it."""
RECENT = 100
"""Calibrations of one set and judge that a night reads: more than it is compared with."""
_REPEATED = re.compile(r" \((\d+) times\)$")


def save_calibration(
    files: Files, calibration: Calibration, units: Mapping[str, Sequence[Unit]]
) -> None:
    """Store a calibration. Its record is written last."""
    records = [
        {"metric": metric, **{name: getattr(unit, name) for name in PART_SCHEMA.names[1:]}}
        for metric, of_metric in units.items()
        for unit in of_metric
    ]
    sink = BytesIO()
    pq.write_table(pa.Table.from_pylist(records, PART_SCHEMA), sink, compression="zstd")
    path = f"calibrations/{place_of(calibration)}"
    files.write(f"{path}.parquet", sink.getvalue())
    files.write(f"{path}.json", calibration.model_dump_json(indent=1).encode())


def load_calibrations(
    files: Files, *, name: str | None = None, judge: str | None = None, newest: int | None = None
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
    read = zip(paths, files.find_all(paths), strict=True)
    # A record may have been removed since the listing.
    problem = "not a calibration and is left out"
    parsed = (parse_record(files, path, data, Calibration, problem) for path, data in read)
    found = [one for one in parsed if one]
    chosen = [one for one in found if judge is None or one.judge.name == current_judge_name(judge)]
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
    with StoredPart(files, path).reading():
        part = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
        for record in part.read(use_threads=False).to_pylist():
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


@dataclass(frozen=True)
class History:
    """The calibrations of a store and the drift between them, both oldest first."""

    calibrations: Sequence[Calibration] = ()
    drifts: Sequence[Drift] = ()

    def drift_to(self, later: Calibration) -> Drift | None:
        """Drift from the earlier calibrations to this one, if there are any."""
        key = later.at, later.name, later.judge.name
        return next((one for one in self.drifts if (one.later, one.name, one.judge) == key), None)

    def newest_drifts(self, judge: JudgeInfo) -> list[Drift]:
        """The newest known drift of each metric, for each judge of a night and each labelled set.

        Where the newest drift is not known, the one before it is used. A calibration without
        verdicts is used as such.
        """
        known: dict[tuple[str, str], dict[str, tuple[Drift, MetricDrift]]] = {}
        for drift in self.drifts:
            for metric in drift.metrics:
                names = judge_names(_scoring(judge, metric.metric))
                if drift.judge in names and metric.untold in ("", "no_verdict"):
                    known.setdefault((drift.judge, drift.name), {})[metric.metric] = drift, metric
        return [_merged(list(known[key].values())) for key in sorted(known)]


def judge_names(judge: JudgeInfo) -> list[str]:
    """The names of a night's judges in their calibrations, where each is asked once; without that
    of a judge under `also`.
    """
    return judge.panel or [_REPEATED.sub("", judge.name)]


def _scoring(judge: JudgeInfo, target: str) -> JudgeInfo:
    """Of a night's judges the one whose verdicts are compared with labels in a metric."""
    scored = [name for name, of in label_targets().items() if of == target]
    return next((one for name in scored if (one := judge.of(name)) is not judge), judge)


def repeats(judge: JudgeInfo) -> int:
    """How often a night's single judge repeated each request."""
    found = _REPEATED.search(judge.name)
    return int(found[1]) if found else 1


def compare_calibrations(files: Files, earlier: Calibration, later: Calibration) -> Drift:
    """Drift of the judge from one calibration to another, of the same set and judge.

    Raises InputError for calibrations of different sets or judges, or that are not stored.
    """
    return compare_last(partial(load_units, files), [earlier], later)


def calibration_drifts(
    files: Files, *, name: str | None = None, judge: str | None = None
) -> list[Drift]:
    """Each calibration of a store compared with those before it, oldest first."""
    units = partial(load_units, files)
    return _oldest_first(
        compare_last(units, history[:number], history[number])
        for history in _by_judge(load_calibrations(files, name=name, judge=judge))
        for number in range(1, len(history))
    )


def load_history(files: Files, newest: int | None = RECENT) -> History:
    """Read the newest calibrations of each set and judge, or all, and the drift between them."""
    found = load_calibrations(files, newest=newest)
    return History(
        found,
        _oldest_first(one for own in _by_judge(found) for one in _drifts(files, own[-STEPS - 1 :])),
    )


def _by_judge(calibrations: Sequence[Calibration]) -> list[list[Calibration]]:
    """The calibrations of each set and judge."""
    found: dict[tuple[str, str], list[Calibration]] = {}
    for calibration in calibrations:
        found.setdefault((calibration.name, calibration.judge.name), []).append(calibration)
    return list(found.values())


def _oldest_first(drifts: Iterable[Drift]) -> list[Drift]:
    return sorted(drifts, key=lambda one: (one.later, one.name, one.judge))


def _drifts(files: Files, calibrations: Sequence[Calibration]) -> Iterator[Drift]:
    """The drift to each calibration but the first: as stored, else compared now and stored.

    A stored comparison with another earlier calibration is not used.
    """
    for number, later in enumerate(calibrations[1:], 1):
        earlier = calibrations[:number]
        path = f"calibrations/drift/{place_of(later)}.json"
        drift = find_record(files, path, Drift, "not a drift and is compared again")
        try:
            if not drift or (drift.before, drift.later) != (earlier[-1].at, later.at):
                drift = compare_last(partial(load_units, files), earlier, later)
                _save_drift(files, path, drift)
            yield drift
        except (InputError, pa.ArrowInvalid) as error:
            log.error("%s: drift at %s is not known: %s", later.name, later.at, error)


def _save_drift(files: Files, path: str, drift: Drift) -> None:
    """Store a comparison; where that fails the next night compares again."""
    try:
        files.write(path, drift.model_dump_json(indent=1).encode())
    except StoreError as error:
        if error.transient:
            raise
        log.error("%s", error)
        note_damage(str(error))


def _merged(known: Sequence[tuple[Drift, MetricDrift]]) -> Drift:
    """One drift record that combines the newest drift of each metric."""
    found = [drift for drift, _ in known]
    newest = max(found, key=lambda one: one.later)
    return newest.model_copy(
        update={
            "earlier": min(one.earlier for one in found),
            "same_fingerprint": all(one.same_fingerprint for one in found),
            "metrics": [one for _, one in known],
        }
    )
