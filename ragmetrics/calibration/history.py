"""All calibrations of a store with the drift between them. Each comparison is stored.

calibrations/drift/set=NAME/judge=FINGERPRINT/TIME.json     named after the later calibration
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pydantic import ValidationError

from ragmetrics.calibration.drift import compare_last
from ragmetrics.calibration.store import load_calibrations, place_of
from ragmetrics.errors import InputError
from ragmetrics.model import Calibration, Drift, JudgeInfo, MetricDrift
from ragmetrics.storage import Files

log = logging.getLogger(__name__)
STEPS = 30
"""Newest calibrations of one set and judge that are compared, each with those before it."""
RECENT = 100
"""Calibrations of one set and judge that a night reads: more than it is compared with."""
_REPEATED = re.compile(r" \((\d+) times\)$")


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
        names = judge_names(judge)
        known: dict[tuple[str, str], dict[str, tuple[Drift, MetricDrift]]] = {}
        for drift in self.drifts:
            for one in drift.metrics:
                if drift.judge in names and one.untold in ("", "no_verdict"):
                    known.setdefault((drift.judge, drift.name), {})[one.metric] = drift, one
        return [_merged(list(known[key].values())) for key in sorted(known)]


def load_history(files: Files, newest: int | None = RECENT) -> History:
    """Read the newest calibrations of each set and judge, or all, and the drift between them."""
    found = load_calibrations(files, newest=newest)
    pairs: dict[tuple[str, str], list[Calibration]] = {}
    for one in found:
        pairs.setdefault((one.name, one.judge.name), []).append(one)
    drifts = [drift for own in pairs.values() for drift in _drifts(files, own[-STEPS - 1 :])]
    return History(found, sorted(drifts, key=lambda one: (one.later, one.name, one.judge)))


def judge_names(judge: JudgeInfo) -> list[str]:
    """The names of a night's judges in their calibrations, where each is asked once."""
    return judge.panel or [_REPEATED.sub("", judge.name)]


def repeats(judge: JudgeInfo) -> int:
    """How often a night's single judge repeated each request."""
    found = _REPEATED.search(judge.name)
    return int(found[1]) if found else 1


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


def _drifts(files: Files, calibrations: Sequence[Calibration]) -> Iterator[Drift]:
    for number, later in enumerate(calibrations[1:], 1):
        earlier = calibrations[:number]
        try:
            yield _find(files, earlier, later) or _compare(files, earlier, later)
        except (InputError, pa.ArrowInvalid) as error:
            log.error("%s: drift at %s is not known: %s", later.name, later.at, error)


def _find(files: Files, earlier: Sequence[Calibration], later: Calibration) -> Drift | None:
    """The stored comparison, if its earlier calibration is still the same."""
    data = files.find(_path(later))
    try:
        drift = None if data is None else Drift.model_validate_json(data)
    except ValidationError:
        return None  # another version: compare again
    return drift if drift and (drift.before, drift.later) == (earlier[-1].at, later.at) else None


def _compare(files: Files, earlier: Sequence[Calibration], later: Calibration) -> Drift:
    drift = compare_last(files, earlier, later)
    files.write(_path(later), drift.model_dump_json(indent=1).encode())
    return drift


def _path(later: Calibration) -> str:
    return f"calibrations/drift/{place_of(later)}.json"
