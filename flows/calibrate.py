"""The calibrate flow: compares the judges with labelled rows, for the dashboard and the alerts.

python -m flows.calibrate --settings ragmetrics.yaml labelled/*.jsonl
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator, Sequence

from prefect import flow, get_run_logger

from flows.command_line import exit_code, parser_of
from ragmetrics.cli import out, print_calibration
from ragmetrics.config import load_settings
from ragmetrics.errors import InputError, RagmetricsError
from ragmetrics.records import Calibration, Drift, Status
from tasks.calibrate import calibrate as calibrate_judges, find_drifts, publish
from tasks.nightly import failures

Compared = tuple[Calibration, Drift | None]


class CalibrationShort(RagmetricsError):
    """The calibrations are stored, but they are incomplete, or the dashboard lacks them."""


@flow(name="calibrate")
def calibrate(
    settings: str = "ragmetrics.yaml",
    labelled: list[str] | None = None,
    metrics: list[str] | None = None,
) -> list[Compared]:
    """Compare every judge of the settings with labelled sets, and store the calibrations.

    Parameters: the path of a settings file, the sets (default: those of the settings), and metrics
    (default: all that the labels allow). Returns each calibration with its changes since the one
    before. A run may be repeated: on one day nothing is paid for twice. A judge that drifted is
    logged, shown on the dashboard, and sent to Slack by the next nightly.
    Raises CalibrationShort, after publishing, if a file is broken, verdicts are missing or the
    dashboard could not be written.
    """
    log = get_run_logger()
    chosen = load_settings(settings)
    places = labelled or list(chosen.labelled)
    if not places:
        raise InputError("no labelled set: name them in the settings under labelled:")
    calibrations = calibrate_judges(chosen, places, metrics, dt.datetime.now(dt.UTC))
    drifts = find_drifts(chosen, calibrations)
    for calibration, drift in zip(calibrations, drifts, strict=True):
        log.info("%s on %s: %d rows", calibration.judge.name, calibration.name, calibration.rows)
        if drift and drift.drifted:
            log.warning("%s drifted on %s since %s", drift.judge, drift.name, drift.earlier)
    unshown = failures(publish(chosen, calibrations, drifts, return_state=True))
    if missing := [*shortfalls(calibrations, chosen.alerts.limit("judge_failures")), *unshown]:
        raise CalibrationShort("; ".join(missing))
    return list(zip(calibrations, drifts, strict=True))


def shortfalls(calibrations: Sequence[Calibration], most: float) -> list[str]:
    """The gaps of calibrations: broken files, metrics with a larger share of failed verdicts."""
    return [
        f"{calibration.judge.name} on {calibration.name}: {reason}"
        for calibration in calibrations
        for reason in _gaps(calibration, most)
    ]


def _gaps(calibration: Calibration, most: float) -> Iterator[str]:
    if calibration.refused:
        yield f"refused: {calibration.refused}"
        return
    for broken in calibration.broken:
        yield f"{broken.file}: {broken.reason}"
    for metric in calibration.metrics:
        asked = sum(metric.status.values())
        failed = asked - metric.status.get(Status.SCORED, 0)
        if failed > most * asked:
            yield f"{metric.metric}: {failed:,} of {asked:,} units got no usable verdict"
    if not (calibration.metrics or calibration.gold):
        yield "no label to compare it with"


def main() -> int:
    """Calibrate from the command line: 0 fine, 1 drift or something missing, 2 input error."""
    parser = parser_of("calibrate", __doc__)
    parser.add_argument("labelled", nargs="*", help="default: those of the settings")
    args = parser.parse_args()

    def run() -> int:
        load_settings(args.settings)  # before Prefect's server starts, which takes seconds
        calibrated = calibrate(args.settings, args.labelled or None)
        for calibration, drift in calibrated:
            print_calibration(out, calibration, drift)
        return int(any(drift and drift.drifted for _, drift in calibrated))

    return exit_code(run, CalibrationShort)


if __name__ == "__main__":
    sys.exit(main())
