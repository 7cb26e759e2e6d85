"""Late nights: nights whose first run is published after that of a newer night.

The order of nights is not certain: a queue may run them out of order, and a night may fail and be
run again days later. So what counts is whether a night was notified of, not whether it is the
newest: its first publication sends its message, "Late night of DATE: ...", and the states of the
newer nights are computed again. Its repetition sends nothing, and neither does a backfill.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from ragmetrics.delivery.alert_store import AlertStore
from ragmetrics.delivery.state_fold import fold_states
from ragmetrics.records import Finding, Manifest


def is_late(alerts: AlertStore, day: date, earlier_runs: Sequence[Manifest]) -> bool:
    """Whether a night is older than the newest one, and nobody was notified of it.

    `earlier_runs` are the published runs of the night. A run of a backfill has sent nothing, and
    its night stays silent.
    """
    if alerts.night is None or day >= alerts.night or day in alerts.nights:
        return False
    known = bool(alerts.nights) and alerts.nights[0] < day
    about_to = (one.late or (known and _has_message(one)) for one in earlier_runs)
    return not earlier_runs or any(about_to)


def _has_message(night: Manifest) -> bool:
    return any(one.transition for one in night.findings)


def with_late_night(
    alerts: AlertStore,
    after: AlertStore,
    findings: Sequence[Finding],
    newer: Sequence[Manifest],
    remind_days: int,
) -> AlertStore:
    """The newest alert store with a late night in it.

    `after` are the states after the late night, `findings` its findings with transitions, `newer`
    the nights since. Only alerts that were not ok in the late night change. People know from its
    message how they stand now.
    """
    changed = {one.key for one in findings if one.transition or one.level != "ok"}
    told = {one.key for one in findings if one.transition}
    folded = fold_states(newer, remind_days, begin=after, computed=told).states
    states = alerts.states | {key: folded[key] for key in changed if key in folded}
    nights = (*alerts.nights, *([after.night] if after.night else []))
    return alerts.model_copy(update={"states": states, "nights": tuple(sorted({*nights}))})
