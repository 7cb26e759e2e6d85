"""Judge drift: a judge answers the same labelled rows in another way than before.

It is found by the newest calibrations of the night's judges, and by the labelled set that every
night judges again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ragmetrics.metrics import label_targets
from ragmetrics.people import FEWEST_QUESTIONS
from ragmetrics.records import (
    Drift,
    Figure,
    Finding,
    Level,
    Manifest,
    MetricDrift,
    former_judge_name,
)
from ragmetrics.rules.context import NightContext
from ragmetrics.rules.judge_movement import level_between
from ragmetrics.rules.min_rules import DRIFT_NIGHTS
from ragmetrics.rules.night_check import Sample, Tonight, are_alike, check
from ragmetrics.rules.sides import SURE
from ragmetrics.stats import Drop, MeanDifference, with_movement


def _explains(cause: Finding, finding: Finding, night: Manifest) -> bool:
    """The same drift, found in another way; with a panel it may be another judge's."""
    return finding.kind == cause.kind and not night.judge.panel and are_alike(cause, finding)


def _level_moved(tonight: Tonight) -> Iterator[Finding]:
    """A warning where the judges' level on the fixed set moved since seven nights by more than its
    usual movement from night to night.

    It also fires where judge drift explains a part of tonight's drops, so that the explanation is
    visible. It is `no_data` where the set has too few verdicts; there is none without a set.
    """
    night, manifest = tonight.night, tonight.manifest
    if (fixed := night.fixed_sets) is None:
        return
    if not fixed.judged(manifest):
        text = "not judged, so judge drift is not known"
        yield _of_level(tonight, "no_data", text)
        return
    if (count := fixed.questions(manifest)) < FEWEST_QUESTIONS:
        text = (
            f"{count} of its questions have all verdicts, {FEWEST_QUESTIONS} are needed, so judge "
            "drift is not known"
        )
        yield _of_level(tonight, "no_data", text)
        return
    moves = {one.metric: move for one in manifest.metrics if (move := _unusual(night, one.metric))}
    significant = {
        name: _describe(move)
        for name, move in moves.items()
        if len(moves) * _two_sided(move) < SURE
    }
    explained = {
        finding.metric: finding.explained
        for finding in tonight.findings
        if finding.metric and finding.metric in label_targets() and finding.explained
    }
    for name, part in explained.items():
        significant.setdefault(name, f"fell by about {part:.3f}")
    if not significant:
        text = "no significant change" if moves else "no earlier night to compare with"
        yield _of_level(tonight, "ok", text)
        return
    text = "; ".join(f"{name} {change}" for name, change in significant.items())
    why = f"; it explains at least part of the drop of {', '.join(explained)}" if explained else ""
    yield _of_level(tonight, "breach", f"{text}{why}", affects=list(significant))


@check(
    "judge_drift",
    order=40,
    after_rules=_level_moved,
    explains=_explains,
    needs_verdicts=True,
    needs=("rows", "a judge's level"),
    ends_comparison=True,
    sample=Sample(
        "Judge drift",
        "openai gpt-6-luna: no significant change since its last calibration on labelled",
        "openai gpt-6-luna on labelled, 2026-11-12 to 2026-11-19: context_recall drifted: "
        "quadratic kappa moved by -0.120 [-0.190, -0.050], 11% of verdicts changed",
        key="judge=openai gpt-6-luna/set=labelled",
    ),
)
def judge_drift(tonight: Tonight) -> Iterator[Finding]:
    """The judge answers the same labelled rows in another way than before. Its numbers from before
    and after are not compared.

    A finding for each newest drift of the night's judges, one for each labelled set; after the
    rules, one on the set that the night judged.
    """
    yield from (_since_calibration(tonight, drift) for drift in tonight.night.drifts)


def _since_calibration(tonight: Tonight, drift: Drift) -> Finding:
    """A warning that lasts until a calibration shows no further change.

    It silences no rule, as a drop may have another cause: the list of corrections computes how much
    of a drop the judge explains.
    """
    changed = [one for one in drift.metrics if _significantly_drifted(one)]
    states = [
        _changed(metric) if metric in changed else f"{metric.metric}: {metric.state}"
        for metric in drift.metrics
        if metric in changed or metric.untold
    ]
    since = f"{drift.judge} on {drift.name}, {drift.earlier:%Y-%m-%d} to {drift.later:%Y-%m-%d}"
    why = "" if drift.same_fingerprint else " (with changed settings or prompts)"
    level: Level = "breach" if changed else "no_data" if drift.has_unknown else "ok"
    return tonight.finding(
        level,
        f"{drift.judge}: no significant change since its last calibration on {drift.name}",
        f"{since}: {'; '.join(states) or 'no drift shown'}{why}",
        key=f"judge={former_judge_name(drift.judge)}/set={drift.name}",
        affects=[one.metric for one in changed],
    )


def _significantly_drifted(one: MetricDrift) -> bool:
    """Whether p is at most 1%: with a calibration every night, 5% would be noise."""
    return one.drifted and (one.p_value is None or one.p_value <= SURE)


def _changed(one: MetricDrift) -> str:
    share = "" if one.changed.value is None else f", {one.changed.value:.0%} of verdicts changed"
    shown = {"quadratic kappa": one.figures.get("kappa_quadratic"), "AUC": one.figures.get("auc")}
    moves = [f"{name} {_move(found)}" for name, found in shown.items() if found]
    return f"{one.metric} drifted: {', '.join(moves)}{share}"


def _move(found: Figure) -> str:
    if found.value is None or found.low is None or found.high is None:
        return "not known"
    return f"moved by {found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def _of_level(tonight: Tonight, level: Level, text: str, **fields: Any) -> Finding:
    return tonight.finding(
        level,
        "the judge scores the labelled set as on the nights before",
        f"{tonight.manifest.judge.name} on the labelled set: {text}",
        key="level",
        **fields,
    )


def _unusual(night: NightContext, metric: str) -> Drop | None:
    """The drop of the level tonight, with the error of its movement from night to night.

    The other corrections are left out: it is the drift itself, over the same labelled rows.
    """
    before, tonight = night.comparable(metric)[-DRIFT_NIGHTS:], [night.manifest]
    move = night.fixed_sets.moved(metric, before, tonight) if night.fixed_sets else None
    return with_movement(move, level_between(night, metric, before, tonight)) if move else None


def _describe(move: Drop) -> str:
    down = "fell" if move.drop > 0 else "rose"
    return (
        f"{down} by {abs(move.drop):.3f} [{-move.high:+.3f}, {-move.low:+.3f}] "
        f"over {move.questions} questions"
    )


def _two_sided(move: Drop) -> float:
    """Two-sided p of a move; for a fall at least twice its own p, which has more information than
    the t test.
    """
    found = MeanDifference(move.drop, move.error, move.freedom).p_two_sided
    return max(found, min(1.0, 2 * move.p_value)) if move.drop > 0 else found
