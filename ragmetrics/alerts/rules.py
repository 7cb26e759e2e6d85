"""Rules: a night's numbers become findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragmetrics.alert_settings import AlertSettings, Rule
from ragmetrics.alerts.evidence import Night, Questions, held_against, together
from ragmetrics.alerts.health import check_health
from ragmetrics.alerts.markup import clean
from ragmetrics.alerts.spells import MOST_NIGHTS, nights_out, spell_before
from ragmetrics.protocol import Status
from ragmetrics.records import Finding, Level, Manifest, Segment, Summary
from ragmetrics.stats.comparisons import Drop
from ragmetrics.store.history import trailing
from ragmetrics.summarise import find_segments, summarise

DEFAULT_RULES = (
    Rule(metric="context_relevance", max_drop=0.05, versus="trailing:7"),
    Rule(metric="context_recall", max_drop=0.05, versus="trailing:7"),
)


@dataclass(frozen=True)
class _Case:
    """One rule held against one segment, before the family's control."""

    rule: Rule
    finding: Finding
    drop: Drop | None = None
    """The surer one: tonight's, or that of all nights of the spell together."""
    beyond: bool = False
    """Whether tonight alone is beyond the line."""
    was_firing: bool = False


def evaluate(settings: AlertSettings, night: Night) -> list[Finding]:
    """All findings of a night. What explains a metric's finding stands first and silences it:
    with nothing to score, no metric rule is held.
    """
    health = check_health(settings, night.manifest, night.drifts)
    if any(finding.level == "no_data" for finding in health):
        return [_clean(finding) for finding in health]
    silenced = {finding.metric for finding in health if finding.level == "breach"}
    rules = settings.rules if settings.rules is not None else _applicable(night)
    cases = [
        case
        for rule in rules
        if rule.metric not in silenced
        for segment in _segments(rule, night)
        for case in _hold(rule, segment, night)
    ]
    return [_clean(finding) for finding in (*health, *_controlled(cases, settings.false_alarms))]


def _clean(finding: Finding) -> Finding:
    """Tags and reasons come from logs: no line break or escape code of theirs reaches a log."""
    told = {"message": clean(finding.message, 1_000), "rule": clean(finding.rule, 300)}
    return finding.model_copy(update=told)


def _applicable(night: Night) -> list[Rule]:
    """The default rules, less those whose metric has never had a row to score."""
    seen = [night.manifest, *night.earlier]
    return [
        rule
        for rule in DEFAULT_RULES
        if any((summary := one.summary(rule.metric)) and summary.scored for one in seen)
    ]


def _segments(rule: Rule, night: Night) -> list[Segment | None]:
    if rule.by is None:
        return [None]
    before = {
        summary.segment.value
        for one in trailing(night.earlier, night.manifest.date, 7)
        for summary in one.segments
        if summary.segment and summary.segment.tag == rule.by
    }
    # Tonight's by the rows: the manifest's segments are only those that are shown.
    scores = night.scores.get(rule.metric)
    now = {segment.value for segment in find_segments(scores, [rule.by])} if scores else set()
    values = before | now
    return [Segment(tag=rule.by, value=value) for value in sorted(values)]


def _hold(rule: Rule, segment: Segment | None, night: Night) -> list[_Case]:
    """Hold a rule's limits against a segment: one finding for `min`, one for `max_drop`."""
    now = _summary(rule.metric, segment, night)
    cases = []
    if rule.min is not None:
        cases.append(_hold_min(rule, segment, night, now))
    if rule.max_drop is not None and (case := _hold_drop(rule, segment, night, now)):
        cases.append(case)
    return cases


def _summary(metric: str, segment: Segment | None, night: Night) -> Summary | None:
    if metric not in night.scores:
        return None
    if segment is None:
        return night.manifest.summary(metric)
    scores = night.scores[metric]
    if f"tag:{segment.tag}" not in scores.table:
        return None
    return summarise(scores, "", segment)


def _hold_min(rule: Rule, segment: Segment | None, night: Night, now: Summary | None) -> _Case:
    limit = float(rule.min if rule.min is not None else 0)
    finding = _finding(rule, segment, night, f"min {limit:g}", f"below {limit:g}", now, limit)
    if now is None or now.mean is None or now.scored < rule.min_rows:
        return _Case(rule, _too_few(rule, finding, now))
    level: Level = "ok"
    if now.mean < limit:
        sure = now.high is not None and now.high < limit
        level = "breach" if sure else "suspect"
    elif rule.clear is not None and now.mean < rule.clear:
        level = "suspect" if _was_firing(finding, night) else "ok"
    text = f"{finding.metric}{_of(segment)} is {now.mean:.3f}{_interval(now)}, limit {limit:g}"
    return _Case(rule, finding.model_copy(update={"level": level, "message": text}))


def _hold_drop(
    rule: Rule, segment: Segment | None, night: Night, now: Summary | None
) -> _Case | None:
    limit = float(rule.max_drop if rule.max_drop is not None else 0)
    name = f"max_drop {limit:g} versus {rule.versus}"
    text = f"drop of more than {limit:g} against {_versus(rule.versus)}"
    finding = _finding(rule, segment, night, name, text, now, limit)
    if now is None or now.mean is None or now.scored < rule.min_rows:
        return _Case(rule, _too_few(rule, finding, now))
    was_firing = _was_firing(finding, night)
    baseline, spell = _nights(rule, night, finding.key)
    if not baseline:
        return _incomparable(rule, finding, night, "no earlier night by the same judge")
    before = night.questions(rule.metric, segment, baseline)
    now_nights: list[Questions] = [night.scores[rule.metric].by_question(segment)]
    drop = alone = held_against(before, now_nights)
    if drop is None or alone is None:
        return _incomparable(rule, finding, night, "too few questions shared with earlier nights")
    line = min(limit, rule.clear) if was_firing and rule.clear is not None else limit
    if spell and alone.drop > line:
        all_nights = [*night.questions(rule.metric, segment, spell), *now_nights]
        pooled = held_against(before, all_nights)
        if pooled and pooled.drop > line and pooled.p_value < alone.p_value:
            now_nights, drop = all_nights, pooled
    mean, after = _mean(before), _mean(now_nights)
    label = baseline[0].date.isoformat() if len(baseline) == 1 else f"{len(baseline)} nights before"
    over = f" over {len(spell) + 1} nights" if drop is not alone else ""
    message = (
        f"{rule.metric}{_of(segment)} {'fell' if drop.drop > 0 else 'went'} from {mean:.3f} "
        f"({label}) to {after:.3f}{over}; drop {drop.drop:.3f} [{drop.low:.3f}, {drop.high:.3f}] "
        f"over {drop.questions} {'shared ' if drop.paired else ''}questions, limit {limit:g}"
    )
    update: dict[str, Any] = {
        "message": message,
        "baseline": mean,
        "baseline_label": label,
        "drop": drop.drop,
        "drop_low": drop.low,
        "drop_high": drop.high,
        "p_value": drop.p_value,
        "for_nights": None,
    }
    told = finding.model_copy(update=update)
    return _Case(rule, told, drop, alone.drop > line, was_firing)


def _mean(nights: Sequence[Questions]) -> float:
    rows = [value for values in together(nights).values() for value in values]
    return sum(rows) / len(rows)


def _controlled(cases: Sequence[_Case], false_alarms: float) -> list[Finding]:
    """Decide the drop rules together, so that a night on which nothing changed fires nothing.

    Each p value is first multiplied by the comparisons that can make its rule fire: tonight with
    one of `for` baselines, and two to `for` nights together.
    """
    tested = [(case, case.drop) for case in cases if case.drop is not None]
    if not tested:
        return [case.finding for case in cases]
    from scipy import stats  # takes most of a second: only a night that is compared pays it

    chances = [min(1.0, drop.p_value * (2 * case.rule.for_ - 1)) for case, drop in tested]
    adjusted = dict(
        zip(
            (id(case) for case, _ in tested),
            stats.false_discovery_control(chances).tolist(),
            strict=True,
        )
    )
    return [
        _decide(case, case.drop, adjusted[id(case)], false_alarms) if case.drop else case.finding
        for case in cases
    ]


def _decide(case: _Case, drop: Drop, p_value: float, false_alarms: float) -> Finding:
    """Beyond the line and surely: breach. An alert fires as long as its evidence stands."""
    limit, sure = case.rule.max_drop or 0.0, p_value < false_alarms
    level: Level = "ok"
    message = case.finding.message
    if case.beyond and sure:
        level = "breach" if drop.drop > limit else "suspect"
    elif case.beyond and not case.was_firing:
        level = "suspect"
    elif case.beyond:
        message += "; the nights since do not bear the alarm out"
    update = {"level": level, "p_value": p_value, "message": message}
    return case.finding.model_copy(update=update)


def _nights(rule: Rule, night: Night, key: str) -> tuple[list[Manifest], list[Manifest]]:
    """The nights to compare with, and those of the present spell, to be judged with tonight.

    Only nights scored in the same way by the same judge. Nights on which this alert was firing,
    and those that led to it, are no measure: a drop that stays must not come to look resolved. A
    spell that is merely pending is left out as long as it lasts; it counts again once it is over,
    for to drop all poor nights for good would make of the best ones the measure.
    """
    comparable = night.comparable(rule.metric)
    start = spell_before(night.earlier, key, rule.for_ - 1) or night.manifest.date
    out = nights_out(night.earlier, key)
    before = [one for one in comparable if one.date < start and one.date not in out]
    nights = 1 if rule.versus == "previous" else int(rule.versus.partition(":")[2])
    spell = [one for one in comparable if one.date >= start]
    return before[-nights:], spell[-(MOST_NIGHTS - 1) :]


def _finding(
    rule: Rule,
    segment: Segment | None,
    night: Night,
    name: str,
    text: str,
    now: Summary | None,
    limit: float,
) -> Finding:
    where = str(segment) if segment else "all"
    return Finding(
        key=f"{night.manifest.dataset}/{rule.metric}/{where}/{name}",
        kind="metric",
        level="ok",
        severity=rule.severity,
        rule=f"{rule.metric}{_of(segment)}: {text}",
        message="",
        metric=rule.metric,
        segment=segment,
        mean=now.mean if now else None,
        low=now.low if now else None,
        high=now.high if now else None,
        n=now.scored if now else 0,
        questions=now.questions if now else 0,
        limit=limit,
        for_nights=rule.for_,
    )


def _too_few(rule: Rule, finding: Finding, now: Summary | None) -> Finding:
    rows = now.scored if now else 0
    text = f"{finding.metric}{_of(finding.segment)}: {rows} rows scored, {rule.min_rows} needed"
    if now is not None and now.status:
        rest = [f"{n} {status}" for status, n in now.status.items() if status != Status.SCORED]
        text += f" ({', '.join(rest)})" if rest else ""
    return finding.model_copy(update={"level": "no_data", "message": text})


def _incomparable(rule: Rule, finding: Finding, night: Night, reason: str) -> _Case | None:
    """Nothing to compare with is fine, unless the alert fires: then it must not look resolved."""
    if _was_firing(finding, night):
        return None
    text = f"{finding.metric}: nothing to compare with yet: {reason}"
    return _Case(rule, finding.model_copy(update={"message": text}))


def _was_firing(finding: Finding, night: Night) -> bool:
    if not night.earlier:
        return False
    return any(
        one.key == finding.key and one.state == "firing" for one in night.earlier[-1].findings
    )


def _versus(versus: str) -> str:
    if versus == "previous":
        return "the previous night"
    return f"the {versus.partition(':')[2]} nights before"


def _of(segment: Segment | None) -> str:
    return f" of {clean(str(segment), 80)}" if segment else ""


def _interval(now: Summary) -> str:
    return "" if now.low is None or now.high is None else f" [{now.low:.3f}, {now.high:.3f}]"


__all__ = ["DEFAULT_RULES", "Night", "evaluate"]
