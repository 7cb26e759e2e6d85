"""The nightly flow: from the night's logs to scores, a dashboard and an alert.

python -m flows.nightly --settings ragmetrics.yaml --date 2026-11-19
"""

from __future__ import annotations

if __name__ == "__main__":  # before Prefect is imported
    from flows import published_night, temporary_server

    if temporary_server.start():
        published_night.repeat()

import datetime as dt
import sys

from prefect import flow, get_run_logger
from prefect.runtime import flow_run

from flows.planned_night import planned_night
from flows.published_night import end_of, read_arguments
from flows.run_state import (
    bound_starts,
    come_back,
    failed_state,
    first_start,
    leaving,
    run_deadline,
)
from flows.runners import check_runner
from flows.scoring import score_all
from flows.temporary_server import without_heartbeat
from ragmetrics.config import Settings, check_not_future, load_settings, night_before
from ragmetrics.dashboard import night_line
from ragmetrics.delivery import dashboard_link
from ragmetrics.errors import JudgePending
from ragmetrics.pipeline import CoverageShort, Night, NightResult
from ragmetrics.records import deadline_at, use_deadline
from ragmetrics.rules import incidents
from ragmetrics.scoring import list_parts
from ragmetrics.storage import open_store
from tasks.calibrate import judge_labelled
from tasks.nightly import (
    alert,
    announce,
    failures,
    fit_learned,
    publish,
    show_or_tell,
    stage,
    write_back,
)


def _run_name() -> str:
    given = flow_run.parameters
    return f"nightly {given.get('date') or planned_night(given['settings'])}"


@flow(name="nightly", flow_run_name=_run_name)
def nightly(settings: str = "ragmetrics.yaml", date: dt.date | None = None) -> NightResult:
    """Score one night's retrieval logs, publish the dashboard, alert on regressions.

    Parameters: the path of a settings file, and the night. The default is the day before the
    planned start, in the `time_zone` of the settings, else in the zone of the schedule, else in
    UTC; a run that is late, retried or started again has the same night. Returns the manifest and
    the delivery of the messages, or the state `Waiting` if batches are open and the deployment will
    run the night again. A run may be repeated: finished parts, replies and batches are in the
    store, numbers do not change, and no message is sent twice. Judges get requests until the
    deadline of the settings; then the scores so far are published.
    Raises CoverageShort, after publishing and alerting, if not everything could be scored, sent or
    shown; the run ends as `FailedAndTold` if Slack has confirmed the message. Raises
    StartedTooOften if the run crashed three times.
    """
    log = get_run_logger()
    day = date or planned_night(settings)
    bound_starts(f"run the night again: prefect deployment run nightly/nightly --param date={day}")
    chosen = leaving(load_settings(settings))
    check_not_future(day, chosen.time_zone)
    check_runner(chosen)
    until = run_deadline(chosen.deadline)
    with use_deadline(deadline_at(until)):
        staged = stage(chosen, day, first_start())
        source = staged.source
        log.info("%s: %d rows, %d quarantined", day, source.rows, source.quarantined)
        unjudged = judge_labelled(chosen, until)
        wanted = list_parts(chosen, staged)
        scored = score_all(chosen, staged.ref, wanted, until=until)
        pending = [error for error in scored.errors if isinstance(error, JudgePending)]
        if waiting := come_back(pending, settings, day, staged):
            return waiting  # type: ignore[no-any-return]  # a state, which Prefect takes for the result
        problems = [str(error) for error in scored.errors]
        log.info("%d of %d parts scored", len(wanted) - len(problems), len(wanted))
        manifest = publish(chosen, staged, problems + unjudged, wait_for=scored.ended)
        delivery = alert(chosen, manifest)
        unheard = failures(announce(chosen, manifest, return_state=True))
        unshown, notified = show_or_tell(chosen, manifest)
        reports = write_back(chosen, manifest) if chosen.write_back else ()
        if Night(chosen).learns:
            fit_learned(chosen)
    for incident in incidents([one for one in manifest.findings if one.level != "ok"], manifest):
        log.warning("%s: %s", incident.cause.level, incident.sentence)
    if missing := NightResult(manifest, delivery).shortfalls:
        # The message of a night names all firing alerts, and so what is missing.
        notified = notified and delivery.sent
    if missing := [*missing, *unshown, *unheard, *staged.problems]:
        notified = notified and not (unheard or staged.problems)
        return failed_state(CoverageShort.of(manifest, missing), notified=notified)  # type: ignore[no-any-return]
    log.info("%s", night_line(manifest, dashboard_link(chosen, open_store(chosen), manifest)))
    return NightResult(manifest, delivery, reports)


def main() -> int:
    """Run one night from the command line: 0 fine, 1 findings, 2 input error."""
    args = read_arguments()

    def run() -> tuple[Settings, NightResult]:
        settings = load_settings(args.settings)
        Night(settings).check()  # before Prefect's server takes its seconds
        check_runner(settings)
        with without_heartbeat():
            day = args.date or night_before(dt.datetime.now(dt.UTC), settings.time_zone)
            return settings, nightly(args.settings, day)

    return end_of(run)


if __name__ == "__main__":
    sys.exit(main())
