"""Incidents: the findings of a night grouped by their cause, for every view.

Each cause is shown once. The findings that it explains are counted below it, as Alertmanager
inhibits and groups alerts:

    cause                               explains
    all rows are in quarantine          that there is no data
    there is no data                    every rule and check that could not be evaluated
    the rows are an earlier night's     every rule and check that could not be evaluated
    a log is cut short, or many rows    a rule that has too few rows, where the metric scored most
    are in quarantine                   of the remaining ones
    a judge of a panel failed           metrics without verdicts
    a metric has no verdicts            other metrics without verdicts, the rules on each of them,
                                        and a labelled set without verdicts
    the judge drifted                   the same drift, found by another check
    a rule on a metric                  other rules on the same rows that changed with it

The manifest has every finding, and each finding is in exactly one incident.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from ragmetrics.records import Finding, Manifest, Severity, State, Transition
from ragmetrics.rules.night_check import check_of

_NAMED = 4
"""Most names in the line of explained findings."""
_SAME = 20
"""Two messages give the same reason where more than this number of their last characters agree."""
_LOUDEST: tuple[Transition | None, ...] = ("fired", "escalated", "reminded", None, "resolved")


@dataclass(frozen=True)
class Incident:
    """One cause, and the findings that it explains."""

    cause: Finding
    judge: str
    """The name of the night's judge."""
    alike: tuple[Finding, ...] = ()
    """Findings of the same kind: more metrics without verdicts, more rules on the metric."""
    explained: tuple[Finding, ...] = ()
    """Rules and checks without data because of the cause."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, the cause first."""
        return (self.cause, *self.alike, *self.explained)

    @property
    def severity(self) -> Severity:
        """The highest severity of its findings."""
        return "critical" if any(f.severity == "critical" for f in self.findings) else "warning"

    @property
    def state(self) -> State:
        """Firing where any finding is; else the state of the cause."""
        return "firing" if any(f.state == "firing" for f in self.findings) else self.cause.state

    @property
    def transition(self) -> Transition | None:
        """The most important transition of its findings; `fired` comes first."""
        return min((f.transition for f in self.findings), key=_LOUDEST.index)

    @property
    def metrics(self) -> int:
        """Number of metrics with findings of the cause's kind."""
        return len({f.metric for f in (self.cause, *self.alike) if f.metric})

    @property
    def message(self) -> str:
        """The cause in one sentence."""
        several = check_of(self.cause).several if self.cause.level != "ok" else ""
        if several and self.cause.metric and self.metrics > 1:
            begin = several.format(judge=self.judge, metrics=self.metrics)
            return f"{begin}; {self.cause.message}"
        return self.cause.message

    @property
    def folded(self) -> str:
        """The other findings, counted and named; empty where there are none."""
        parts = []
        if self.alike and self.cause.is_rule:
            which = "rules" if self.alike[1:] else "rule"
            parts.append(f"also its {which}: {_some([limit_of(one) for one in self.alike])}")
        elif self.alike:
            parts.append(f"the same in {_some([_name(one) for one in self.alike])}")
        if self.explained:
            names = Counter(_name(one) for one in self.explained)
            counts = [f"{name} ({count})" if count > 1 else name for name, count in names.items()]
            parts.append(
                f"explains {len(self.explained)} more alerts without data: {_some(counts)}"
            )
        return "; ".join(parts)

    def beside(self, one: Finding) -> str:
        """A finding's message without the ending that it shares with the cause."""
        ends = zip(reversed(one.message), reversed(self.cause.message), strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
        return (
            one.message[: len(one.message) - same].rstrip(" :;,") if same > _SAME else one.message
        )

    @property
    def sentence(self) -> str:
        """The cause in one sentence, with the other findings in brackets."""
        return f"{self.message} ({self.folded})" if self.folded else self.message


def incidents(findings: Sequence[Finding], night: Manifest) -> list[Incident]:
    """The incidents of some findings of a night, in the order of their causes."""
    places = {one.metric: place for place, one in enumerate(night.metrics)}

    def place(one: Finding) -> int:
        return places.get(one.metric or "", len(places))

    causes = [one for one in findings if check_of(one).explains and _matters(one)]
    causes.sort(key=lambda one: (*_rank(one), place(one)))
    rules = _first_rules(findings)
    roots: dict[int, Finding] = {}
    for finding in [*causes, *findings]:
        found = rules.get(_rule_key(finding)) or _cause_of(finding, causes, roots, night)
        roots.setdefault(id(finding), found)
    members: dict[int, list[Finding]] = {}
    for finding in sorted(findings, key=place):
        members.setdefault(id(roots[id(finding)]), []).append(finding)
    return [_incident(one, members[id(one)], night) for one in findings if id(one) in members]


def limit_of(finding: Finding) -> str:
    """The rule in words without the name of its metric."""
    return finding.rule.partition(": ")[2] or finding.rule


def _incident(cause: Finding, members: Sequence[Finding], night: Manifest) -> Incident:
    rest = [one for one in members if one is not cause]
    kind = cause.kind, bool(cause.metric)
    alike = tuple(finding for finding in rest if (finding.kind, bool(finding.metric)) == kind)
    explained = tuple(finding for finding in rest if (finding.kind, bool(finding.metric)) != kind)
    return Incident(cause, night.judge.name, alike, explained)


def _cause_of(
    one: Finding, causes: Sequence[Finding], roots: Mapping[int, Finding], night: Manifest
) -> Finding:
    """The root of the first cause that explains a finding; the finding itself without one."""
    for cause in causes:
        if cause is one:
            break
        alike = (cause.transition == "resolved") == (one.transition == "resolved")
        explains = check_of(cause).explains
        if alike and explains and explains(cause, one, night):
            return roots[id(cause)]
    return one


def _matters(one: Finding) -> bool:
    return one.level != "ok" or one.transition is not None


def _rank(one: Finding) -> tuple[int, bool]:
    """Order of causes: a cause comes before what it may explain, a panel's judge before metrics."""
    return check_of(one).cause_place, one.metric is not None


def _first_rules(findings: Sequence[Finding]) -> dict[tuple[object, ...] | None, Finding]:
    """The leading rule of those that changed together on the same rows. A drop leads, because it
    explains a low mean.
    """
    found: dict[tuple[object, ...] | None, Finding] = {}
    for finding in sorted(findings, key=lambda one: one.drop is None):
        if key := _rule_key(finding):
            found.setdefault(key, finding)
    return found


def _rule_key(one: Finding) -> tuple[object, ...] | None:
    """Key of rules on the same rows that changed together; None for other findings."""
    changed = one.state != "ok" or one.transition == "resolved"
    if not one.is_rule or one.level == "no_data" or not changed:
        return None
    return one.metric, str(one.segment), one.state, one.transition, str(one.silence)


def _name(one: Finding) -> str:
    return one.metric or check_of(one).term


def _some(names: Sequence[str]) -> str:
    """The first names, and the count of the others."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
