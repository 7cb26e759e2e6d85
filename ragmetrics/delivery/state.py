"""The state machine of alerts: turns findings into transitions, once per change and night.

    ok ──> pending ──> firing ──> ok        messages: `fired`; `reminded` and `escalated` while
                                                      it fires; `resolved`

The state of an alert and the state of its messages are separate. A snoozed alert has no messages
until the snooze ends; then a message reports its state. An acknowledged alert has no reminders. An
alert that is worse than in its last message escalates, which ends its silence.

This module reads no file, clock or network. A run does, in this order:

    alerts, findings = advance_states(alerts, findings, night, remind_days, silences, run)
    alerts = alerts.queue(messages)               if there are any
    (store its outbox, then the states)
    alerts, errors = deliver(alerts, send)        of `outbox`

So if a run dies anywhere, its rerun or the next night reports its changes, and none is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from types import MappingProxyType

from ragmetrics.delivery.alert_store import MOST_NIGHTS, AlertStore
from ragmetrics.delivery.outbox import recover, withdraw
from ragmetrics.delivery.renamed_alerts import under_keys_of_today
from ragmetrics.records import (
    AlertState,
    Finding,
    Level,
    Notification,
    Severity,
    Silence,
    State,
    Transition,
    is_more_severe,
)
from ragmetrics.rules import check_of, suppresses_rules

UNJUDGED = 0
"""`for_nights` of findings that `advance_states` adds without a check. No rule has 0."""
NO_SILENCES: Mapping[str, Silence] = MappingProxyType({})


def advance_states(
    alerts: AlertStore,
    findings: Sequence[Finding],
    night: date,
    remind_days: int,
    silences: Mapping[str, Silence] = NO_SILENCES,
    run: str = "",
) -> tuple[AlertStore, list[Finding]]:
    """Move every alert to `night` by the findings of a run; return the findings with state,
    transition and since.

    - `breach` and `no_data` fire at once. `suspect` fires on the `for_nights`-th judged night in a
      row that is not ok, or never where that is None. A firing alert fires until it is `ok`. The
      change from pending to ok sends no message.
    - A firing alert has a reminder after `remind_days`, and at once where its severity rises.
    - A firing alert escalates where its finding is worse than at its last notification, and where
      it was no data and is a breach now (for logs: where they were broken and are missing now). It
      escalates in spite of a silence and ends it: only a later silence counts.
    - `silences` are by key. A snoozed alert has no other transitions. On the first night after the
      snooze, a message reports that it fired, still fires, or has resolved. An acknowledged alert
      has no message until it resolves, escalates or rises in severity.
    - A rerun of the newest night starts from the night before. Delivered messages are not repeated.
      A message of this night in the outbox is withdrawn and composed again. If the rerun has
      another result, a message reports the difference.
    - Waiting messages of a run that died before it stored the states count as sent.
    - An older night (a backfill) changes nothing and has no transitions.
    - A firing alert without a finding (its rule was removed, its segment is gone, or problems of
      the night suppress it) stays as it is. It is added at the end as a `no_data` finding. After
      `remind_days` without a finding it is closed on the first night without such problems, which
      is a `resolved` transition with the reason. Alerts that do not fire are removed then.
    - An alert whose key has changed (`Finding.renamed_from`) goes on under its new key.
    - The returned findings may be passed again with the same store: the result is the same.

    The `since` of a resolved finding is the first night of the incident that ended.
    """
    if alerts.night is not None and night < alerts.night:
        return alerts, [finding.model_copy(update={"transition": None}) for finding in findings]
    alerts = recover(withdraw(alerts, night), night)
    known = under_keys_of_today(alerts.states, findings)
    silences = under_keys_of_today(silences, findings)
    states: dict[str, AlertState] = {}
    results: list[Finding] = []
    judged = [finding for finding in findings if finding.for_nights != UNJUDGED]
    health = (one for one in judged if not check_of(one).lasting or suppresses_rules(one))
    healthy = all(one.level == "ok" for one in health)
    for finding in judged:
        was, silence = known.get(finding.key, AlertState()), silences.get(finding.key)
        states[finding.key], result = _judge(was, finding, night, remind_days, silence, run)
        results.append(result)
    for key, was in known.items():
        if key in states or was.finding is None or was.last_night is None:
            continue
        stale = healthy and (night - was.last_night).days >= remind_days
        now, unchecked = _carry_over(was, was.finding, night, stale, silences.get(key))
        states |= {key: now} if now else {}
        results += [unchecked] if unchecked else []
    undo = {f.key: known.get(f.key, AlertState()) for f in results if f.transition}
    nights = tuple(sorted({*alerts.nights, night}))[-MOST_NIGHTS:]
    moved = AlertStore(night=night, nights=nights, states=states, outbox=alerts.outbox, undo=undo)
    return moved, results


def _judge(
    was: AlertState,
    finding: Finding,
    night: date,
    remind_days: int,
    silence: Silence | None,
    run: str,
) -> tuple[AlertState, Finding]:
    base = (was.previous or AlertState()) if was.last_night == night else was
    state: State = "ok"
    since, nights = None, 0
    if finding.level != "ok":
        since, nights = base.since or night, base.nights + 1
        waits = finding.for_nights is None or nights < finding.for_nights
        fires = finding.level != "suspect" or not waits
        state = "firing" if fires or "firing" in (base.state, was.state) else "pending"
    silence = _in_force(silence, was, night, since, finding.severity)
    transition = _transition(was, state, finding, night, remind_days, silence)
    ended = silence if transition == "escalated" else None
    silence = None if ended else silence
    now = AlertState(
        state=state,
        since=since,
        nights=nights,
        last_night=night,
        last_sent=night if transition else was.last_sent,
        told=_known(was, state, since, transition),
        notified=_notified(was, finding, night, run, transition),
        unsilenced=ended.at if ended else was.unsilenced,
        snoozed=_snoozes(silence),
        finding=finding,
        previous=_bare(base),
    )
    update = {
        "state": state,
        "transition": transition,
        "since": was.told if transition == "resolved" else since,
        "silence": silence,
        "ended": ended,
        "unsilenced": now.unsilenced,
    }
    return now, finding.model_copy(update=update)


def _transition(
    was: AlertState,
    state: State,
    finding: Finding,
    night: date,
    remind_days: int,
    silence: Silence | None,
) -> Transition | None:
    """The transition to report; `was.told` and `was.notified` are what was reported before."""
    if state == "firing" and was.told and was.notified and _is_worse(was.notified, finding):
        return "escalated"
    if _snoozes(silence):
        return None
    if state != "firing":
        return "resolved" if was.told else None
    if not was.told:
        return "fired"
    if silence:
        return None
    if was.snoozed or (was.finding and is_more_severe(was.finding.severity, finding.severity)):
        return "reminded"
    due = was.last_sent and (night - was.last_sent).days >= remind_days
    return "reminded" if due else None


def _is_worse(notified: Notification, finding: Finding) -> bool:
    """Whether a finding is worse than its last notification. An escalation measured from another
    notification does not count.
    """
    if finding.escalation and finding.escalation.notified == notified:
        return True
    worst: Level = "no_data" if check_of(finding).halts else "breach"
    return {notified.level, finding.level} == {"no_data", "breach"} and finding.level == worst


def _notified(
    was: AlertState, finding: Finding, night: date, run: str, transition: Transition | None
) -> Notification | None:
    """The last notification with numbers, after this transition."""
    if transition == "resolved":
        return None
    numbers = finding.level != "no_data" or check_of(finding).halts or was.notified is None
    if transition and numbers:
        return Notification(night=night, run=run, level=finding.level, mean=finding.mean)
    return was.notified


def _known(
    was: AlertState, state: State, since: date | None, transition: Transition | None
) -> date | None:
    """First night of the reported incident, after this transition."""
    if transition == "resolved":
        return None
    return since if transition or (was.told and state == "firing") else was.told


def _in_force(
    silence: Silence | None,
    was: AlertState,
    night: date,
    since: date | None,
    severity: Severity,
) -> Silence | None:
    in_force = silence and silence.is_in_force(night, since, severity, was.unsilenced)
    return silence if in_force else None


def _snoozes(silence: Silence | None) -> bool:
    return silence is not None and silence.until is not None


def _bare(state: AlertState) -> AlertState:
    """The state without its own history, as only one earlier night is needed."""
    return state.model_copy(update={"previous": None})


def _closed(was: AlertState, night: date) -> AlertState:
    return AlertState(
        last_night=night,
        last_sent=night,
        unsilenced=was.unsilenced,
        finding=was.finding,
        previous=_bare(was),
    )


def _carry_over(
    was: AlertState, last: Finding, night: date, stale: bool, silence: Silence | None
) -> tuple[AlertState | None, Finding | None]:
    """The state and finding of an alert that nothing judged tonight; None where it is removed, or
    has no finding.
    """
    firing = was.state == "firing"
    if not (firing or was.told):
        return None if stale else was, None
    silence = _in_force(silence, was, night, was.since, last.severity)
    if _snoozes(silence):
        result = _unchecked(was, last, silence=silence) if firing else None
        return was.model_copy(update={"snoozed": True}), result
    if not firing:  # it resolved during a snooze, which was not reported
        update = {"state": "ok", "transition": "resolved", "since": was.told, "silence": None}
        result = last.model_copy(update={**update, "for_nights": UNJUDGED})
        cleared = {"told": None, "notified": None, "snoozed": False, "last_sent": night}
        now = was.model_copy(update=cleared)
        return None if stale else now, result
    if stale:
        result = _unchecked(was, last, "resolved") if was.told else None
        return _closed(was, night), result
    reminder: Transition | None = "reminded" if was.snoozed and not silence else None
    transition = reminder if was.told else "fired"
    known = {
        "told": was.since,
        "notified": was.notified or Notification(night=night, level="no_data"),
        "snoozed": False,
        "last_sent": night if transition else was.last_sent,
    }
    return was.model_copy(update=known), _unchecked(was, last, transition, silence)


def _unchecked(
    was: AlertState,
    last: Finding,
    transition: Transition | None = None,
    silence: Silence | None = None,
) -> Finding:
    """The finding of a firing alert without a check, or of one closed for that reason."""
    what = last.rule if last.metric else last.kind  # a metric may have several rules
    closed = transition == "resolved"
    end = "; its rule was removed or its segment is gone" if closed else ""
    return Finding(
        key=last.key,
        kind=last.kind,
        level="no_data",
        severity=last.severity,
        rule=last.rule,
        message=f"{what}; not checked since {was.last_night}{end}",
        metric=last.metric,
        segment=last.segment,
        for_nights=UNJUDGED,
        state="ok" if closed else "firing",
        transition=transition,
        since=was.told if closed else was.since,
        silence=silence,
        unsilenced=was.unsilenced,
    )


def notifications(alerts: AlertStore, night: date) -> Mapping[str, Notification]:
    """The last notification of each firing alert, as `advance_states` to a night sees it."""
    states = recover(withdraw(alerts, night), night).states
    return {key: one.notified for key, one in states.items() if one.told and one.notified}
