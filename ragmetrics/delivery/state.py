"""The state machine of alerts: turns findings into transitions, once per change and night.

    ok ──> pending ──> firing ──> ok        messages: `fired`; `reminded` and `escalated` while
                                                      it fires; `resolved`

The state of an alert and the state of its messages are separate. A snoozed alert has no messages
until the snooze ends; then a message reports its state. An acknowledged alert has no reminders. An
alert that is worse than in its last message escalates, which ends its silence.

This module reads no file, clock or network. `state_fold` applies it to the nights of a store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import Any, TypeAlias

from pydantic import Field

from ragmetrics.records import (
    AlertState,
    Finding,
    Level,
    Notification,
    Record,
    Severity,
    Silence,
    State,
    Told,
    Transition,
    is_more_severe,
    under_keys_of_today,
    without_numbers,
)
from ragmetrics.rules import check_of, suppresses_rules

UNJUDGED = 0
"""`for_nights` of findings that `judge_findings` adds without a check. No rule has 0."""
NO_SILENCES: Mapping[str, Silence] = MappingProxyType({})
_NEW = AlertState()
_Change: TypeAlias = Mapping[str, Any]
"""What the state machine changes in a finding."""


class AlertStates(Record):
    """The states of all alerts after a night."""

    night: date | None = None
    """The newest night of the states."""
    states: dict[str, AlertState] = Field(default_factory=dict)
    """By `Finding.key`."""

    def heard(self, told: Iterable[Told]) -> AlertStates:
        """The states after people were told, in this order."""
        states = dict(self.states)
        for message in told:
            states[message.finding.key] = states.get(message.finding.key, _NEW).heard(message)
        return self.model_copy(update={"states": states})

    @property
    def notified(self) -> Mapping[str, Notification]:
        """The last notification of each firing alert."""
        known = self.states.items()
        return {key: one.notified for key, one in known if one.told and one.notified}

    @property
    def snapshot(self) -> dict[str, AlertState]:
        """What later nights need of the states; findings without their numbers."""
        known = {key: one for key, one in self.states.items() if one.is_known}
        return {
            key: was.model_copy(update={"finding": was.finding and without_numbers(was.finding)})
            for key, was in known.items()
        }


def advance_states(
    alerts: AlertStates,
    findings: Sequence[Finding],
    night: date,
    remind_days: int,
    silences: Mapping[str, Silence] = NO_SILENCES,
    run: str = "",
) -> tuple[AlertStates, list[Finding]]:
    """Like `judge_findings`, with all its messages delivered."""
    judged, found = judge_findings(alerts, findings, night, remind_days, silences)
    return judged.heard(messages_of(judged, found, run)), found


def judge_findings(
    alerts: AlertStates,
    findings: Sequence[Finding],
    night: date,
    remind_days: int,
    silences: Mapping[str, Silence] = NO_SILENCES,
) -> tuple[AlertStates, list[Finding]]:
    """Move every alert to `night` by the findings of a run; return the findings with state,
    transition and since. The states do not count the messages of these transitions.

    `alerts` are the states after the night before, with what was told about tonight: so a rerun
    repeats no message. If it has another result, a message reports the difference.

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
    - A firing alert without a finding (its rule was removed, its segment is gone, or problems of
      the night suppress it) stays as it is. It is added at the end as a `no_data` finding. After
      `remind_days` without a finding it is closed on the first night without such problems, which
      is a `resolved` transition with the reason. Alerts that do not fire are removed then.
    - An alert whose key has changed (`Finding.renamed_from`) goes on under its new key.

    The `since` of a resolved finding is the first night of the incident that ended.
    """
    states, changes = changed_states(alerts.states, findings, night, remind_days, silences)
    results = [finding.model_copy(update=change) for finding, change in changes]
    return AlertStates(night=night, states=states), results


def changed_states(
    known: Mapping[str, AlertState],
    findings: Sequence[Finding],
    night: date,
    remind_days: int,
    silences: Mapping[str, Silence],
) -> tuple[dict[str, AlertState], list[tuple[Finding, _Change]]]:
    """The states of `judge_findings`, and its findings with what changes in them: a fold needs only
    the states.
    """
    known = under_keys_of_today(known, findings)
    silences = under_keys_of_today(silences, findings)
    states: dict[str, AlertState] = {}
    changes: list[tuple[Finding, _Change]] = []
    judged = [finding for finding in findings if finding.for_nights != UNJUDGED]
    for finding in judged:
        was, silence = known.get(finding.key, _NEW), silences.get(finding.key)
        states[finding.key], change = _judge(was, finding, night, remind_days, silence)
        changes.append((finding, change))
    left = [(key, was) for key, was in known.items() if key not in states]
    healthy = bool(left) and _is_healthy(judged)
    for key, was in left:
        if was.finding is None or was.last_night is None:
            continue
        stale = healthy and (night - was.last_night).days >= remind_days
        now, unchecked = _carry_over(was, was.finding, night, stale, silences.get(key))
        states |= {key: now} if now else {}
        changes += [(unchecked, {})] if unchecked else []
    return states, changes


def _is_healthy(judged: Sequence[Finding]) -> bool:
    """Whether a night has no problem that may keep a rule from its verdict."""
    return all(
        finding.level == "ok"
        for finding in judged
        if not check_of(finding).lasting or suppresses_rules(finding)
    )


def messages_of(alerts: AlertStates, findings: Sequence[Finding], run: str) -> list[Told]:
    """What people are told by the transitions of a night; `alerts` are the states after it."""
    night = alerts.night or date.min
    return [
        told
        for finding in findings
        if (told := told_by(finding, alerts.states.get(finding.key, _NEW), night, run))
    ]


def told_by(finding: Finding, state: AlertState, night: date, run: str) -> Told | None:
    """What people are told by a finding's transition; None without one.

    A night without data keeps the numbers of the last message, from which the alert may escalate.
    """
    if finding.transition is None:
        return None
    resolved = finding.transition == "resolved"
    numbers = finding.level != "no_data" or check_of(finding).halts or state.notified is None
    now = Notification(night=night, run=run, level=finding.level, mean=finding.mean)
    return Told(
        night=night,
        transition=finding.transition,
        since=None if resolved else finding.since,
        notified=None if resolved else now if numbers else state.notified,
        unsilenced=finding.ended.at if finding.ended else None,
        finding=without_numbers(finding),
    )


def _judge(
    was: AlertState, finding: Finding, night: date, remind_days: int, silence: Silence | None
) -> tuple[AlertState, _Change]:
    """The state of an alert after tonight's finding, and what changes in the finding."""
    not_ok = finding.level != "ok"
    since, nights = (was.since or night, was.nights + 1) if not_ok else (None, 0)
    state = _state(was, finding, nights)
    silence = _in_force(silence, was, night, since, finding.severity)
    transition = _transition(was, state, finding, night, remind_days, silence)
    silence, ended = (None, silence) if transition == "escalated" else (silence, None)
    update = {
        "state": state,
        "since": since,
        "judged": was.judged if finding.level == "no_data" else state,
        "nights": nights,
        "last_night": night,
        "severity": finding.severity,
        "told": since if was.told and state == "firing" else was.told,
        "snoozed": _snoozes(silence),
        "finding": finding,
    }
    change = {
        "state": state,
        "transition": transition,
        "since": was.told or was.unheard if transition == "resolved" else since,
        "silence": silence,
        "ended": ended,
        "unsilenced": ended.at if ended else was.unsilenced,
    }
    return was.model_copy(update=update), change


def _state(was: AlertState, finding: Finding, nights: int) -> State:
    """The state on the so many-th night in a row that is not ok."""
    if finding.level == "ok":
        return "ok"
    waits = finding.for_nights is None or nights < finding.for_nights
    fires = finding.level != "suspect" or not waits or was.state == "firing"
    return "firing" if fires else "pending"


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
        return "resolved" if was.told or was.unheard else None
    if not was.told:
        return "fired"
    if silence:
        return None
    if was.snoozed or (was.severity and is_more_severe(was.severity, finding.severity)):
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


def _in_force(
    silence: Silence | None, was: AlertState, night: date, since: date | None, severity: Severity
) -> Silence | None:
    in_force = silence and silence.is_in_force(night, since, severity, was.unsilenced)
    return silence if in_force else None


def _snoozes(silence: Silence | None) -> bool:
    return silence is not None and silence.until is not None


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
    now = was.model_copy(update={"snoozed": False})
    if not firing:  # it resolved during a snooze, which was not reported
        update = {"state": "ok", "transition": "resolved", "since": was.told, "silence": None}
        return now, last.model_copy(update={**update, "for_nights": UNJUDGED})
    if stale:
        closed = {"state": "ok", "judged": "ok", "since": None, "nights": 0, "last_night": night}
        result = _unchecked(was, last, "resolved") if was.told else None
        return now.model_copy(update=closed), result
    reminder: Transition | None = "reminded" if was.snoozed and not silence else None
    told = was.since if was.told else None
    result = _unchecked(was, last, reminder if was.told else "fired", silence)
    return now.model_copy(update={"told": told}), result


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
