"""Alert states as a fold over manifests: what `alerts/state.json` should hold after some nights.

    state of a night = advance_states(state of the night before, findings of its manifest)

A manifest also says which messages its run was about to send: the transitions of its findings. The
fold takes these as sent, and no others. So an alert that fired on a silent night counts as firing,
and as not told yet.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ragmetrics.delivery.alert_store import AlertStore
from ragmetrics.delivery.renamed_alerts import under_keys_of_today
from ragmetrics.delivery.state import advance_states
from ragmetrics.records import AlertState, Finding, Manifest, Notification


def fold_states(
    nights: Sequence[Manifest],
    remind_days: int,
    *,
    begin: AlertStore | None = None,
    computed: Collection[str] = (),
) -> AlertStore:
    """The alert states after some nights, oldest first, from the states at their `begin`.

    Of the alerts `computed` the transitions count as the fold computes them, as if each had been
    sent; of the others as the manifests have them.
    """
    alerts = begin or AlertStore()
    for night in nights:
        before = under_keys_of_today(alerts.states, night.findings)
        alerts, moved = advance_states(
            alerts, night.findings, night.date, remind_days, run=night.run
        )
        said = {one.key: one for one in night.findings}
        states = dict(alerts.states)
        for finding in moved:
            now, recorded = states.get(finding.key), said.get(finding.key)
            if now and recorded and finding.key not in computed:
                was = before.get(finding.key, AlertState())
                states[finding.key] = _as_recorded(was, now, finding, recorded, night)
        alerts = alerts.model_copy(update={"states": states})
    return alerts


def _as_recorded(
    was: AlertState, now: AlertState, computed: Finding, recorded: Finding, night: Manifest
) -> AlertState:
    """The state of an alert with the message that its manifest has, or with none."""
    if bool(computed.transition) == bool(recorded.transition):
        return now
    if not recorded.transition:
        silence = recorded.silence
        held = silence is not None and silence.until is not None
        kept = ("told", "notified", "last_sent", "unsilenced")
        update = {name: getattr(was, name) for name in kept}
        return now.model_copy(update={**update, "snoozed": held})
    told = now.since if recorded.state == "firing" else None
    numbers = Notification(
        night=night.date, run=night.run, level=recorded.level, mean=recorded.mean
    )
    update = {"told": told, "notified": numbers if told else None, "last_sent": night.date}
    return now.model_copy(update={**update, "snoozed": False})
