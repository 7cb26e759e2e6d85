"""Findings: the results of the alert rules for one night; states and silences of alerts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, TypeVar

from pydantic import AwareDatetime, Field, model_validator

from ragmetrics.records.base import Record
from ragmetrics.records.changes import ComparedMeans, ContributorShare, DatedChange
from ragmetrics.records.score import Segment

Level = Literal["ok", "suspect", "breach", "no_data"]
State = Literal["ok", "pending", "firing"]
Transition = Literal["fired", "escalated", "resolved", "reminded"]
Severity = Literal["critical", "warning"]
_Known = TypeVar("_Known")


class Notification(Record):
    """The numbers of the last message about a firing alert."""

    night: date
    run: str = ""
    """Run of the numbers; empty where an earlier version sent the message."""
    level: Level = "breach"
    mean: float | None = None


class Escalation(Record):
    """How much worse a firing alert is than at its last notification: significantly, and by more
    than the rule's `worse_by`.
    """

    notified: Notification
    label: str
    """The night that tonight is compared with: `2026-11-18`."""
    before: float
    """Mean of the compared questions at the notification; for a check of logs or judge, the share
    of rows."""
    now: float
    """Mean of the compared questions tonight, or tonight's share of rows."""
    drop: float
    """How much worse tonight is; positive."""
    low: float
    high: float
    p_value: float
    """One-sided p value of no change for the worse, adjusted over the night's escalations."""
    n: int
    """Compared questions, or rows of a share."""
    limit: float

    @property
    def is_share(self) -> bool:
        """Whether the numbers are shares of rows, for which higher is worse."""
        return self.now > self.before

    def __str__(self) -> str:
        """`worse than in the last message (2026-11-18): 0.466 → 0.258, drop 0.208 [...]`."""
        what, unit = ("rise", "rows") if self.is_share else ("drop", "questions")
        return (
            f"worse than in the last message ({self.label}): {self.before:.3f} → {self.now:.3f}, "
            f"{what} {self.drop:.3f} [{self.low:.3f}, {self.high:.3f}] over {self.n:,} {unit}, "
            f"limit {self.limit:g}"
        )


class Silence(Record):
    """Somebody acknowledged an alert, or snoozed it."""

    key: str
    """Key of the alert."""
    at: AwareDatetime
    by: str = ""
    note: str = ""
    until: date | None = None
    """Snoozed: the first night with messages again; None: acknowledged."""
    since: date | None = None
    """Acknowledged: the first night of the incident."""
    severity: Severity = "critical"
    """Acknowledged: the severity at that time."""

    def __str__(self) -> str:
        """`acknowledged by Ada: the index is being rebuilt`."""
        what = f"snoozed until {self.until}" if self.until else "acknowledged"
        by = f" by {self.by}" if self.by else ""
        return f"{what}{by}: {self.note}" if self.note else f"{what}{by}"

    def is_in_force(
        self,
        night: date,
        since: date | None,
        severity: Severity,
        unsilenced: datetime | None = None,
    ) -> bool:
        """Whether the silence is in force on a night, for an alert that fires since `since`.

        `since` is None where the alert does not fire. A snooze lasts until its date. An
        acknowledgement lasts for its incident, at its severity or below. An escalation of the
        alert ended the silences made up to `unsilenced`.
        """
        if unsilenced and self.at <= unsilenced:
            return False
        if self.until:
            return night < self.until
        same = since is not None and self.since == since
        return same and not is_more_severe(self.severity, severity)


class Finding(Record):
    """The decision of one rule for one night, with its numbers.

    `key` identifies the alert: dataset, metric, segment and rule. The state machine fills in
    `state` and `transition`.
    """

    key: str
    renamed_from: str = ""
    """The key of the same alert in earlier versions, whose state moves on under `key`."""
    kind: str
    """`metric` for a rule on a metric, else the name of a check of the night."""
    level: Level
    severity: Severity = "critical"
    rule: str
    """The rule in words: `context_recall: below 0.7`."""
    message: str
    """The finding in one sentence, with its numbers."""
    metric: str | None = None
    segment: Segment | None = None
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    questions: int = 0
    baseline: float | None = None
    """Mean of all rows of the baseline nights."""
    baseline_label: str | None = None
    """`2026-11-18` or `the 7 nights before`."""
    means: ComparedMeans | None = None
    """Means of the questions that the drop is measured on."""
    rise: bool = False
    """Whether `drop` counts a rise: lower is better in its metric, or neither and it rose."""
    drop: float | None = None
    drop_low: float | None = None
    drop_high: float | None = None
    paired: bool | None = None
    """Whether each question is compared with itself in the drop."""
    mix: float | None = None
    """Part of the fall of the mean that is due to another mix of tags; `drop` is without it.
    None: not compared like with like."""
    mix_tags: list[str] = Field(default_factory=list)
    """The tags by which like is compared with like; `weekday` for the day of the week."""
    explained: float | None = None
    """Part of a drop that judge drift or stale labels explain; for a mean, how much higher it
    would be without them."""
    affects: list[str] = Field(default_factory=list)
    """For judge drift: the metrics in which the judge moved."""
    p_value: float | None = None
    """p value of the drop, adjusted over all drop rules; 1 where the drop is within its limit."""
    mde: float | None = None
    """Smallest worsening that is found on four nights of five. For a drop: by this rule alone, at
    its strictness. For a mean: by a one-sided test at 5%."""
    limit: float | None = None
    sees: bool = True
    """False where `mde` is as large as all that can fall, and even a fall to 0 would not be
    significant: the rule cannot see a regression here."""
    compared: bool = True
    """False for an `ok` without a comparison: the drop had no earlier night to compare with."""
    for_nights: int | None = 2
    """Suspects fire after this many nights in a row; None: only a breach fires."""
    state: State = "ok"
    transition: Transition | None = None
    since: date | None = None
    """First night of the current pending or firing incident."""
    change: DatedChange | None = None
    """For a firing metric alert: when its level fell; None where no single night can be named."""
    carriers: list[ContributorShare] | None = None
    """What the drop is attributed to, the largest share first; None: not analysed."""
    silence: Silence | None = None
    """The silence that holds back messages or reminders."""
    escalation: Escalation | None = None
    """How much worse it is than at the last notification; None: not significantly worse."""
    ended: Silence | None = None
    """The silence that tonight's escalation ended."""
    unsilenced: datetime | None = None
    """Silences made before this time have ended, because the alert escalated."""

    @property
    def is_rule(self) -> bool:
        """Whether it is of a rule on a metric, and not of a check of the night."""
        return self.kind == "metric"


def is_more_severe(before: Severity, now: Severity) -> bool:
    """Whether a severity is above another."""
    return (before, now) == ("warning", "critical")


ID_LENGTH = 8


_NAMES = ("key", "kind", "level", "severity", "rule", "message", "metric", "segment", "state")


class Told(Record):
    """What a message said about one alert."""

    night: date
    transition: Transition
    since: date | None = None
    """First night of the reported incident; None where it has resolved."""
    notified: Notification | None = None
    """The numbers from which an escalation is measured after this message."""
    unsilenced: datetime | None = None
    """Silences made up to this time have ended, because the alert escalated."""
    finding: Finding
    """The finding without its numbers."""


class AlertState(Record):
    """One alert after the last night that judged it. The default is a new alert."""

    state: State = "ok"
    judged: State = "ok"
    """The state after the last night that judged the alert: a night with too few rows makes it
    fire, and judges nothing."""
    since: date | None = None
    """First night of the current pending or firing incident."""
    nights: int = 0
    """Judged nights in a row that were not ok."""
    last_night: date | None = None
    severity: Severity | None = None
    """Severity of the last finding or message: a rise is reported."""
    last_sent: date | None = None
    """Night of the last message about this alert."""
    told: date | None = None
    """First night of the incident that people were notified of and that is not resolved for them;
    else None."""
    unheard: date | None = None
    """First night of an incident whose message was never queued, because its run died."""
    notified: Notification | None = None
    """Numbers of the last message while the alert fires. An escalation is measured from them."""
    unsilenced: datetime | None = None
    """Silences made up to this time have ended, because the alert escalated."""
    snoozed: bool = False
    """Whether a snooze held back the newest night. A message follows when the snooze ends."""
    finding: Finding | None = None
    """The finding of `last_night`."""

    @property
    def is_known(self) -> bool:
        """Whether anything about the alert matters later: it is not ok, or people heard of it."""
        heard = self.told or self.unheard or self.last_sent or self.unsilenced
        return self.state != "ok" or heard is not None

    def heard(self, told: Told) -> AlertState:
        """The state after people were told. An alert that fires for them fires, whatever a rerun of
        the night found.
        """
        update: dict[str, Any] = {
            "told": told.since,
            "unheard": None,
            "notified": told.notified,
            "severity": told.finding.severity,
            "last_sent": told.night,
            "unsilenced": told.unsilenced or self.unsilenced,
            "snoozed": False,
        }
        if told.since and self.state != "firing":
            update |= {"state": "firing", "since": told.since, "last_night": told.night}
            update |= {"finding": self.finding or told.finding}
            update |= {} if told.finding.level == "no_data" else {"judged": "firing"}
        return self.model_copy(update=update)

    @model_validator(mode="before")
    @classmethod
    def _upgrade(cls, data: Any) -> Any:
        """Read states of earlier versions. Before silences existed, every firing alert had been
        notified. Before escalations existed, only the night of the last message was stored.
        """
        if not isinstance(data, dict):
            return data
        if "told" not in data and data.get("state") == "firing":
            data = {**data, "told": data.get("since")}
        if "notified" not in data and data.get("told") and data.get("last_sent"):
            data = {**data, "notified": {"night": data["last_sent"]}}
        if "judged" not in data and "state" in data:
            last = data.get("finding")
            lacks = isinstance(last, dict) and last.get("level") == "no_data"
            data = {**data, "judged": "ok" if lacks else data["state"]}
        if "severity" not in data and isinstance(data.get("finding"), dict):
            data = {**data, "severity": data["finding"].get("severity", "critical")}
        return data


def without_numbers(finding: Finding) -> Finding:
    """A finding with what names its alert, and its sentence."""
    return Finding(**{name: getattr(finding, name) for name in _NAMES})


def alert_id(key: str) -> str:
    """A short id of an alert, the same every night: `3f9a1c04`."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=ID_LENGTH // 2)
    return digest.hexdigest()


def moved_keys(known: Iterable[str], findings: Iterable[Finding]) -> dict[str, str]:
    """For each known key of an earlier version, the alert's key of today."""
    renamed = [finding for finding in findings if finding.renamed_from in known]
    current = {finding.key for finding in findings} if renamed else set()
    return {
        finding.renamed_from: finding.key
        for finding in renamed
        if finding.renamed_from not in current
    }


def under_keys_of_today(
    known: Mapping[str, _Known], findings: Sequence[Finding]
) -> Mapping[str, _Known]:
    """What is known by alert, under the keys of today. What is there under such a key stays."""
    moved = moved_keys(known, findings)
    if not moved:
        return known
    kept = {key: value for key, value in known.items() if key not in moved}
    return {moved[key]: known[key] for key in moved} | kept
