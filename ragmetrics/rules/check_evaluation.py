"""Asks the checks of a night, in their order: one of another package costs only itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragmetrics.config import AlertSettings, Rule
from ragmetrics.plugins import TookTooLong, UnusablePlugin, in_time
from ragmetrics.records import Finding
from ragmetrics.rules.context import NightContext
from ragmetrics.rules.night_check import (
    CHECKS,
    Check,
    Evaluate,
    Stage,
    Tonight,
    bundled_checks,
)
from ragmetrics.rules.rule_check import RuleCheck
from ragmetrics.text import shorten

LONGEST_SECONDS = 60.0
"""Longest time that a check of another package may take in a night."""


def evaluate_checks(
    stage: Stage,
    settings: AlertSettings,
    night: NightContext,
    rules: Sequence[Rule] = (),
    cases: Sequence[RuleCheck] = (),
    found: Sequence[Finding] = (),
) -> list[Finding]:
    """The findings of the checks of a stage, in the order of the checks."""
    return [
        finding
        for check in _chosen(settings)
        if not check.skips(night, settings)
        for finding in _evaluate(Tonight(check, settings, night, rules, cases, found), stage)
    ]


def _chosen(settings: AlertSettings) -> list[Check]:
    """The bundled checks, and those of other packages that the settings name."""
    named = [name for name in settings.checks if name not in CHECKS.bundled_names]
    return sorted([*bundled_checks(), *map(_foreign, named)], key=lambda check: check.order)


def _foreign(name: str) -> Check:
    """The check of another package; where it cannot be loaded, one that says so each night."""
    try:
        return CHECKS.find(name)
    except UnusablePlugin as error:
        reason = str(error)
        return Check(name, evaluate=lambda tonight: [_failed(tonight, reason)], needs=())


def _evaluate(tonight: Tonight, stage: Stage) -> Iterable[Finding]:
    check = tonight.check
    steps = [check.evaluate] if check.stage == stage else []
    steps += [check.after_rules] if stage == "rules" else []
    if check.name in CHECKS.bundled_names:
        return [finding for step in steps for finding in step(tonight)]
    return [finding for step in steps for finding in _of_others(tonight, step)]


def _of_others(tonight: Tonight, step: Evaluate) -> Sequence[Finding]:
    """The findings of another package's check. One that fails costs only itself."""
    try:
        findings = in_time(lambda: list(step(tonight)), LONGEST_SECONDS)
    except TookTooLong:
        return [_failed(tonight, f"took over {LONGEST_SECONDS:g} s")]
    except Exception as error:
        return [_failed(tonight, f"failed: {shorten(repr(error))}")]
    if not all(tonight.check.made(finding, tonight.manifest) for finding in findings):
        return [_failed(tonight, "returned something else than findings of its name")]
    if len({finding.key for finding in findings}) < len(findings):
        return [_failed(tonight, "returned two findings of one key")]
    return findings


def _failed(tonight: Tonight, reason: str) -> Finding:
    name = tonight.check.name
    return tonight.finding("no_data", f"check {name} can be evaluated", f"{name}: {reason}")
