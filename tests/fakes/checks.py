"""The findings of one check of a night, without its rules."""

from __future__ import annotations

from typing import Any, NoReturn

from ragmetrics.config import AlertSettings
from ragmetrics.records import Finding, Manifest
from ragmetrics.rules import NightContext
from ragmetrics.rules.check import Check, Tonight


def findings_of(check: Check, manifest: Manifest, **night: Any) -> list[Finding]:
    """What a check says of a night without scores; `night` are other fields of its context."""
    if check.skips(manifest):
        return []
    tonight = Tonight(check, AlertSettings(), NightContext(manifest, {}, (), _load, **night))
    return [*check.evaluate(tonight), *check.after_rules(tonight)]


def _load(*_: object) -> NoReturn:
    raise AssertionError("the check reads no scores")
