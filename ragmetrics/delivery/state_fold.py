"""Alert states are a fold over nights: nothing stores them but the manifests.

    states(night) = judge_findings(states(night before) + told(night), findings of its manifest)

What people were told is in the batches of `outbox`. A finding whose transition is in no batch was
never told, as its run died: the next night reports it. So reruns, backfills, missed nights and late
nights are one case.

Each manifest has the states before its night as a snapshot. The fold begins at that of some nights
ago, so that it reads few files, and older manifests may be pruned. A snapshot that is older than a
late night or a rerun before it is not used. Manifests of an earlier version
have none: the transitions in their findings count as told, or `alerts/state.json` says what was.

In earlier versions a drop rule without `versus` compared with the previous night, and its key ended
in `versus previous`. Such an alert goes on under its key of today, so that an open alert is neither
lost nor told twice. A rule that says `versus: previous` keeps its alert.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from ragmetrics.config import AlertSettings, Rule, drop_name
from ragmetrics.delivery.outbox import Batches, known_batches, load_batches
from ragmetrics.delivery.state import (
    AlertStates,
    advance_states,
    changed_states,
    judge_findings,
    messages_of,
)
from ragmetrics.errors import StoreError
from ragmetrics.records import Finding, Manifest, Silence, Told, moved_keys, under_keys_of_today
from ragmetrics.rules import known_silences, silence, silences, unsilence
from ragmetrics.storage import Files, Runs, note_damage, require_record

FOLDED_NIGHTS = 14
"""Newest nights that are folded. A rerun or a late run of an older night moves no state."""
EARLIER_NIGHTS = 90
"""Nights of an earlier version that are folded, as they have no snapshot."""
STATE_FILE = "alerts/state.json"
"""The states that an earlier version stored."""
REMIND_DAYS: int = AlertSettings.model_fields["remind_days"].default
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AlertHistory:
    """What is known of the alerts of a night, for a run that publishes it."""

    files: Files
    settings: AlertSettings
    night: date
    nights: Sequence[Manifest]
    """Outlines of the nights before, with the keys of today."""
    before: AlertStates
    """The states after them."""
    batches: Batches
    replaced: Sequence[Manifest] = ()
    """Earlier runs of the night."""

    @property
    def is_queued(self) -> bool:
        """Whether there are messages of the night already."""
        return bool(self.batches.settled(self.night) or self.batches.replaced(self.night))

    def after(self, *runs: Manifest | None) -> AlertHistory:
        """The same for a run that replaces others; one of an earlier version has no batch."""
        replaced, before = [run for run in runs if run], self.before
        for run in replaced:
            before = before.heard(recorded(run))
        return replace(self, before=before, replaced=replaced)

    def states(self, earlier: Sequence[Manifest], *, silent: bool) -> AlertStates:
        """The states before the night, with what people know about it already. A silent run shows
        what it would have told: its states are those after some earlier nights as if every message
        had been delivered.
        """
        if not silent:
            return self.before.heard(self.batches.told_tonight(self.night))
        alerts, days = AlertStates(), self.settings.remind_days
        for night in earlier:
            alerts, _ = advance_states(alerts, night.findings, night.date, days, run=night.run)
        return alerts

    def judge(
        self, alerts: AlertStates, findings: Sequence[Finding], *, silent: bool
    ) -> list[Finding]:
        """The findings of the night with state, transition and since. A silent run has the silences
        of those that it replaces: they say that a snooze was in force.
        """
        quiet = {} if silent else known_silences(self.files)
        for run in self.replaced if silent else ():
            quiet |= recorded_silences(run)
        days = self.settings.remind_days
        return judge_findings(alerts, findings, self.night, days, quiet)[1]

    def renamed(self, nights: Sequence[Manifest]) -> Sequence[Manifest]:
        """Nights with the keys of today."""
        return with_keys_of_today(self.settings.rules, nights)


def alert_history(
    files: Files, settings: AlertSettings, night: date, nights: Sequence[Manifest]
) -> AlertHistory:
    """What is known of the alerts before a night, from outlines of the nights before it."""
    nights = with_keys_of_today(settings.rules, nights)
    batches = known_batches(files, folded_from(nights), night)
    before = states_after(files, nights, batches, settings.remind_days, night)
    last = [finding for one in nights[-1:] for finding in one.findings]
    known = dict(under_keys_of_today(before.states, last))  # no night was folded under these yet
    before = before.model_copy(update={"states": known})
    return AlertHistory(files, settings, night, nights, before, batches)


def load_alerts(files: Files, remind_days: int | None = None) -> AlertStates:
    """The states of all alerts after the newest night; None: by `remind_days` of its settings."""
    nights = Runs(files).outlines(last=EARLIER_NIGHTS)
    days = remind_days or _remind_days_of(files, nights[-1:])
    return states_after(files, nights, load_batches(files, folded_from(nights)), days)


def _remind_days_of(files: Files, newest: Sequence[Manifest]) -> int:
    """The `remind_days` with which a night ran; the default without a night."""
    chosen = [one.settings.get("alerts") for one in Runs(files).in_full(newest)]
    days = [one.get("remind_days") for one in chosen if isinstance(one, dict)]
    return next((one for one in days if isinstance(one, int)), REMIND_DAYS)


def newest_told(files: Files) -> date | None:
    """The newest night that was published with messages; None where there is none."""
    told = [one.date for one in Runs(files).outlines(last=EARLIER_NIGHTS) if not one.silent]
    return told[-1] if told else None


def folded_from(nights: Sequence[Manifest]) -> date:
    """The first of the nights that are folded: batches before it are not read."""
    return next((one.date for one in _folded(nights)), date.min)


def _folded(nights: Sequence[Manifest]) -> Sequence[Manifest]:
    """The nights that are folded: the newest ones from a valid snapshot on; before them, from the
    newest valid snapshot on; all nights without one.
    """
    usable = [number for number in range(len(nights)) if _is_valid_snapshot(nights, number)]
    window = len(nights) - FOLDED_NIGHTS
    recent = (number for number in usable if number >= window)
    return nights[next(recent, usable[-1] if usable else 0) :]


def _is_valid_snapshot(nights: Sequence[Manifest], number: int) -> bool:
    """Whether a night has a snapshot that counts all nights before it: one that was published after
    it is not in there. Those that are too old to move a state do not matter.
    """
    night, earlier = nights[number], nights[max(0, number - FOLDED_NIGHTS) : number]
    known = night.alerts is not None
    return known and all(one.finished_at < night.finished_at for one in earlier)


def states_after(
    files: Files,
    nights: Sequence[Manifest],
    batches: Batches,
    remind_days: int,
    before: date = date.max,
) -> AlertStates:
    """The alert states after some nights, oldest first, all of them `before` a date."""
    told = [one for one in batches.told if one.night < before]
    nights = _folded(nights)
    if nights and (snapshot := nights[0].alerts) is not None:
        return fold_states(nights, told, remind_days, AlertStates(states=snapshot))
    begin = _of_earlier_version(files, nights)
    if begin.night is None:
        told = [*(one for night in nights for one in recorded(night)), *told]
    since = begin.night or date.min
    return fold_states([one for one in nights if one.date > since], told, remind_days, begin)


def _of_earlier_version(files: Files, nights: Sequence[Manifest]) -> AlertStates:
    """The states that an earlier version stored, where they are not newer than the nights."""
    if not nights:
        return AlertStates()
    try:
        known = require_record(files, STATE_FILE, AlertStates, "is not a state of alerts")
        problem = f"{files.uri(STATE_FILE)} names no night" if known and not known.night else ""
    except StoreError as error:
        known, problem = None, str(error)
    if problem:
        log.error("%s; the states of alerts follow from the manifests", problem)
        note_damage(f"{problem}; the states of alerts follow from the manifests")
    usable = known and known.night and known.night <= nights[-1].date
    return known if known and usable else AlertStates()


def fold_states(
    nights: Sequence[Manifest],
    told: Iterable[Told],
    remind_days: int,
    begin: AlertStates | None = None,
) -> AlertStates:
    """The alert states after some nights, oldest first, from those at their `begin`."""
    first = nights[0].date if nights else date.min
    if begin and begin.night:
        first = max(first, begin.night)
    by_night: dict[date, list[Told]] = {}
    for message in told:
        by_night.setdefault(message.night, []).append(message)
    manifests = {one.date: one for one in nights}
    alerts = begin or AlertStates()
    for day in sorted({*manifests, *(day for day in by_night if day >= first)}):
        messages = by_night.get(day, [])
        if night := manifests.get(day):
            alerts = _after(alerts, night, messages, remind_days)
        else:  # its manifest could not be written, or cannot be read
            alerts = alerts.heard(messages).model_copy(update={"night": day})
    return alerts


def _after(
    alerts: AlertStates, night: Manifest, messages: Sequence[Told], remind_days: int
) -> AlertStates:
    """The states after a night whose messages said this."""
    keys = {one.renamed_from: one.key for one in night.findings if one.renamed_from}
    messages = [_under(one, keys.get(one.finding.key, one.finding.key)) for one in messages]
    before = alerts.states
    if messages:
        known = under_keys_of_today(before, night.findings)
        before = AlertStates(states=dict(known)).heard(messages).states
    quiet = recorded_silences(night)
    states, _ = changed_states(before, night.findings, night.date, remind_days, quiet)
    heard = {one.finding.key for one in messages}
    for finding in () if night.silent else night.findings:
        state = states.get(finding.key) if finding.transition else None
        if finding.key not in heard and state and not state.told:
            unheard = state.unheard or finding.since or night.date
            states[finding.key] = state.model_copy(update={"unheard": unheard})
    return AlertStates.model_construct(night=night.date, states=states)


def _under(told: Told, key: str) -> Told:
    """The same of an alert whose key has changed."""
    if key == told.finding.key:
        return told
    return told.model_copy(update={"finding": told.finding.model_copy(update={"key": key})})


def recorded_silences(night: Manifest) -> dict[str, Silence]:
    """The silences that were in force when a night was published."""
    return {one.key: one.silence for one in night.findings if one.silence}


def recorded(night: Manifest) -> list[Told]:
    """What the transitions in a manifest of an earlier version say that people were told."""
    if night.alerts is not None:
        return []
    return messages_of(AlertStates(night=night.date), night.findings, night.run)


def implied(
    alerts: AlertStates, told: Sequence[Told], newer: Sequence[Manifest], remind_days: int
) -> list[Told]:
    """What the message of a late night says about its alerts in newer nights: how they stand now.

    `alerts` are the states after the late night.
    """
    keys, cleared = {one.finding.key for one in told}, list[Told]()
    for night in newer:
        alerts, findings = advance_states(
            alerts, night.findings, night.date, remind_days, recorded_silences(night), night.run
        )
        said = [one for one in findings if one.key in keys]
        cleared += messages_of(alerts, said, night.run)
    return cleared


def with_keys_of_today(
    rules: Sequence[Rule] | None, nights: Sequence[Manifest]
) -> Sequence[Manifest]:
    """Earlier nights with the keys that tonight's rules give to the same alerts."""
    limits = {(rule.metric, rule.by, name) for rule in rules or () for name in rule.limits}
    names = {
        (rule.metric, rule.by, former): drop_name(rule.max_drop, rule.versus)
        for rule in rules or ()
        if (former := rule.former_limit) and rule.max_drop is not None
        if (rule.metric, rule.by, former) not in limits
    }
    return [_renamed(night, names) for night in nights] if names else nights


def _renamed(night: Manifest, names: Mapping[tuple[str, str | None, str], str]) -> Manifest:
    findings = [_with_key_of_today(finding, names) for finding in night.findings]
    return night if findings == night.findings else night.model_copy(update={"findings": findings})


def _with_key_of_today(
    finding: Finding, names: Mapping[tuple[str, str | None, str], str]
) -> Finding:
    rest, _, limit = finding.key.rpartition("/")
    by = finding.segment.tag if finding.segment else None
    name = names.get((finding.metric or "", by, limit)) if finding.is_rule else None
    if name is None:
        return finding
    return finding.model_copy(update={"key": f"{rest}/{name}", "renamed_from": finding.key})


def move_silences(files: Files, findings: Sequence[Finding]) -> None:
    """Store silences under the keys of today; where the store refuses, that is logged, and the next
    night tries again.
    """
    try:
        kept = silences(files)
        for former, key in moved_keys(kept, findings).items():
            if key not in kept:
                silence(files, kept[former].model_copy(update={"key": key}))
            unsilence(files, former)
    except StoreError as error:
        log.error("silences of renamed alerts could not be moved: %s", error)
