"""Findings become transitions: what people are told, once, however often a night is run.

    ok ──> pending ──> firing ──> ok        told: `fired`, `reminded` and `escalated` while it
                                                  lasts, `resolved`

What people were told is kept apart from what is: of a snoozed alert they hear nothing until the
snooze is over, and then what has become of it; of an acknowledged one no reminders. An alert that
gets worse than what they were last told escalates, which ends its silence.

Nothing here reads a file, a clock or the network. One run does, in this order:

    book, findings = advance(book, findings, night, remind_days, silences, run)
    book = book.queue(messages)             if there are any
    (write its outbox, then the book)
    book, errors = deliver(book, send)      of `waiting`

so that a run that dies anywhere is told of by its rerun or by the next night, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from types import MappingProxyType

from ragmetrics.alerts.alert_store import AlertState, AlertStore
from ragmetrics.alerts.outbox_recovery import recover, withdraw
from ragmetrics.model import (
    Finding,
    Level,
    Notification,
    Severity,
    Silence,
    State,
    Transition,
    is_more_severe,
)

UNJUDGED = 0
"""`for_nights` of findings that `advance` adds: nothing was judged. No rule says 0."""
NO_SILENCES: Mapping[str, Silence] = MappingProxyType({})


def advance_states(
    book: AlertStore,
    findings: Sequence[Finding],
    night: date,
    remind_days: int,
    silences: Mapping[str, Silence] = NO_SILENCES,
    run: str = "",
) -> tuple[AlertStore, list[Finding]]:
    """Move every alert to `night`, by the findings of a run; give these back with state,
    transition and since.

    - `breach` and `no_data` fire at once, `suspect` on the `for_nights`-th judged night in a row
      that is not ok, or never where that is None. A firing alert stays so until it is `ok`.
      Pending to ok is silent.
    - A firing alert is told again after `remind_days`, and at once where its severity got worse.
    - A firing alert escalates where its finding says that it is worse than at the notification
      that the book has of it, and where what was told as no data is a breach now (of the logs:
      where what was broken is gone). It is told whatever its silence is, and the silence has
      ended: only one that is made later counts.
    - `silences` are by key. A snoozed alert has no other transitions. On the first night after
      that, people are told what it is: that it fired, that it still does, or that what they knew
      of has resolved. An acknowledged one is not told again until it resolves, escalates or gets
      worse in severity.
    - A rerun of the newest night starts from the night before it. What was delivered is not told
      again; a message of this night still in the outbox is taken back and its transitions told
      anew. If the rerun comes to another result, people are told of the difference.
    - What waits of a run that died before it wrote the book counts as told.
    - An older night (a backfill) changes nothing and has no transitions.
    - A firing alert without a finding (its rule was removed, its segment is gone, or the night's
      own troubles silence it) stays as it is and is listed at the end as a `no_data` finding.
      After `remind_days` without one it is closed on the first night without such troubles, which
      is told as `resolved` with a message that says why. Others are forgotten then.
    - The findings given back may be given again with the same book: the answer is the same.

    The `since` of a resolved finding is the first night of the spell that ended.
    """
    if book.night is not None and night < book.night:
        return book, [finding.model_copy(update={"transition": None}) for finding in findings]
    book = recover(withdraw(book, night), night)
    states: dict[str, AlertState] = {}
    told: list[Finding] = []
    judged = [finding for finding in findings if finding.for_nights != UNJUDGED]
    # A judge's drift lasts for weeks and silences nothing, so it keeps no alert from being closed.
    health = (one for one in judged if one.kind not in ("metric", "judge_drift", "stale_labels"))
    healthy = all(one.level == "ok" for one in health)
    for finding in judged:
        was, silence = book.states.get(finding.key, AlertState()), silences.get(finding.key)
        states[finding.key], said = _judge(was, finding, night, remind_days, silence, run)
        told.append(said)
    for key, was in book.states.items():
        if key in states or was.finding is None or was.last_night is None:
            continue
        stale = healthy and (night - was.last_night).days >= remind_days
        now, unheard = _unheard(was, was.finding, night, stale, silences.get(key))
        states |= {key: now} if now else {}
        told += [unheard] if unheard else []
    undo = {f.key: book.states.get(f.key, AlertState()) for f in told if f.transition}
    return AlertStore(night=night, states=states, outbox=book.outbox, undo=undo), told


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
        sure = finding.level != "suspect" or not waits
        state = "firing" if sure or "firing" in (base.state, was.state) else "pending"
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
    said = {
        "state": state,
        "transition": transition,
        "since": was.told if transition == "resolved" else since,
        "silence": silence,
        "ended": ended,
        "unsilenced": now.unsilenced,
    }
    return now, finding.model_copy(update=said)


def _transition(
    was: AlertState,
    state: State,
    finding: Finding,
    night: date,
    remind_days: int,
    silence: Silence | None,
) -> Transition | None:
    """What people have to be told: `was.told` and `was.notified` are what they know."""
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
    """Whether a finding is worse than what people were last told. What it says of another
    notification than that does not count.
    """
    if finding.escalation and finding.escalation.notified == notified:
        return True
    worst: Level = "no_data" if finding.kind == "no_data" else "breach"
    return {notified.level, finding.level} == {"no_data", "breach"} and finding.level == worst


def _notified(
    was: AlertState, finding: Finding, night: date, run: str, transition: Transition | None
) -> Notification | None:
    """The last notification with numbers of an alert that people know of."""
    if transition == "resolved":
        return None
    numbers = finding.level != "no_data" or finding.kind == "no_data" or was.notified is None
    if transition and numbers:
        return Notification(night=night, run=run, level=finding.level, mean=finding.mean)
    return was.notified


def _known(
    was: AlertState, state: State, since: date | None, transition: Transition | None
) -> date | None:
    """First night of the spell that people know of, after this transition."""
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
    """The state without its own history: one night back is enough."""
    return state.model_copy(update={"previous": None})


def _closed(was: AlertState, night: date) -> AlertState:
    return AlertState(
        last_night=night,
        last_sent=night,
        unsilenced=was.unsilenced,
        finding=was.finding,
        previous=_bare(was),
    )


def _unheard(
    was: AlertState, last: Finding, night: date, stale: bool, silence: Silence | None
) -> tuple[AlertState | None, Finding | None]:
    """What becomes, and what is said, of an alert that nothing judged tonight; None: nothing."""
    firing = was.state == "firing"
    if not (firing or was.told):
        return None if stale else was, None
    silence = _in_force(silence, was, night, was.since, last.severity)
    if _snoozes(silence):
        said = _unchecked(was, last, silence=silence) if firing else None
        return was.model_copy(update={"snoozed": True}), said
    if not firing:  # it resolved while it was snoozed, and people do not know that
        update = {"state": "ok", "transition": "resolved", "since": was.told, "silence": None}
        said = last.model_copy(update={**update, "for_nights": UNJUDGED})
        cleared = {"told": None, "notified": None, "snoozed": False, "last_sent": night}
        now = was.model_copy(update=cleared)
        return None if stale else now, said
    if stale:
        said = _unchecked(was, last, "resolved") if was.told else None
        return _closed(was, night), said
    wakes: Transition | None = "reminded" if was.snoozed and not silence else None
    transition = wakes if was.told else "fired"
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
    """A firing alert that nothing judges any more, or one that is closed for that."""
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


__all__ = ["NO_SILENCES", "UNJUDGED", "advance_states"]
