"""The calibrate flow: the judges compared with labelled rows, on the dashboard and for the alerts.

python -m flows.calibrate --settings ragmetrics.yaml labelled/*.jsonl
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Iterator, Sequence

from prefect import flow, get_run_logger
from rich.console import Console

from ragmetrics.cli import print_calibration
from ragmetrics.config import load_settings
from ragmetrics.errors import InputError, RagmetricsError
from ragmetrics.model import Calibration, Drift, Status
from tasks.calibrate import calibrate as calibrate_judges
from tasks.calibrate import find_drifts, publish
from tasks.nightly import failures

Held = tuple[Calibration, Drift | None]


class CalibrationShort(RagmetricsError):
    """The calibrations were kept, but something is missing in them, or on the dashboard."""


@flow(name="calibrate")
def calibrate(
    settings: str = "ragmetrics.yaml",
    labelled: list[str] | None = None,
    metrics: list[str] | None = None,
) -> list[Held]:
    """Hold every judge of the settings against labelled sets, and keep what it comes to.

    In: the path of a settings file, the sets (those of the settings where none is given), and
    metrics (all that the labels allow). Out: each calibration with what changed since the one
    before. May be repeated: on the same day nothing is paid for twice. A judge that drifted is
    logged, shown on the dashboard, and told in Slack by the next nightly.
    Raises CalibrationShort, after publishing, where a file was broken, verdicts are missing or the
    dashboard could not be written.
    """
    log = get_run_logger()
    chosen = load_settings(settings)
    places = labelled or list(chosen.labelled)
    if not places:
        raise InputError("no labelled set: name them in the settings under labelled:")
    found = calibrate_judges(chosen, places, metrics, dt.datetime.now(dt.UTC))
    drifts = find_drifts(chosen, found)
    for one, drift in zip(found, drifts, strict=True):
        log.info("%s on %s: %d rows", one.judge.name, one.name, one.rows)
        if drift and drift.drifted:
            log.warning("%s drifted on %s since %s", drift.judge, drift.name, drift.earlier)
    unshown = failures(publish(chosen, found, drifts, return_state=True))
    if missing := [*shortfalls(found, chosen.alerts.max_judge_failures), *unshown]:
        raise CalibrationShort("; ".join(missing))
    return list(zip(found, drifts, strict=True))


def shortfalls(found: Sequence[Calibration], most: float) -> list[str]:
    """What is missing in calibrations, beyond a share of verdicts; nothing where all is there."""
    return [
        f"{one.judge.name} on {one.name}: {reason}" for one in found for reason in _gaps(one, most)
    ]


def _gaps(calibration: Calibration, most: float) -> Iterator[str]:
    if calibration.refused:
        yield f"refused: {calibration.refused}"
        return
    for broken in calibration.broken:
        yield f"{broken.file}: {broken.reason}"
    for one in calibration.metrics:
        asked = sum(one.status.values())
        failed = asked - one.status.get(Status.SCORED, 0)
        if failed > most * asked:
            yield f"{one.metric}: {failed:,} of {asked:,} units got no usable verdict"
    if not (calibration.metrics or calibration.gold):
        yield "no label to hold it against"


def main() -> int:
    """Calibrate from the command line: 0 fine, 1 drift or something missing, 2 input error."""
    parser = argparse.ArgumentParser(prog="python -m flows.calibrate", description=__doc__)
    parser.add_argument("--settings", default="ragmetrics.yaml", help="default: %(default)s")
    parser.add_argument("labelled", nargs="*", help="default: those of the settings")
    told = parser.parse_args()
    out, err = Console(highlight=False), Console(stderr=True, highlight=False)
    try:
        load_settings(told.settings)  # before Prefect's server takes its seconds
        held = calibrate(told.settings, told.labelled or None)
    except CalibrationShort as error:
        err.print(str(error), style="red", markup=False, soft_wrap=True)
        return 1
    except RagmetricsError as error:
        err.print(str(error), style="red", markup=False, soft_wrap=True)
        return 2
    for one, drift in held:
        print_calibration(out, one, drift)
    return int(any(drift and drift.drifted for _, drift in held))


if __name__ == "__main__":
    sys.exit(main())
