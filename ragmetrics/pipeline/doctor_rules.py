"""What `doctor` says of the alert rules: whether each can fire, and what it can see.

The nights of the store show it: their means, their rows, and the smallest drops that rules found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import fmean

from ragmetrics.comparison import find_serving
from ragmetrics.config import Rule, Settings
from ragmetrics.errors import RagmetricsError
from ragmetrics.records import Manifest
from ragmetrics.rules import DEFAULT_RULES, Known, blind_texts, why_it_cannot_fire
from ragmetrics.storage import Files, Runs, open_store
from ragmetrics.text import plural

_NIGHTS = 7
_SHARES = ("quarantine", "judge_failures", "stale_labels")
"""Checks whose limit is a share of the rows."""


class DoctorWarning(RagmetricsError):
    """A night works, and there is something to know."""


def rules_text(settings: Settings, day: date) -> str:
    """How many rules there are. Raises DoctorWarning for those that cannot fire, and for metrics
    that cannot see a regression.
    """
    rules, files = settings.alerts.rules, open_store(settings)
    nights = Runs(files).outlines(last=_NIGHTS) if files.exists("") else []
    text = "the default rules" if rules is None else plural(len(rules), "rule")
    if not nights:
        text += "; the first nights will show whether they can fire"
    newest = Runs(files).in_full(nights[-1:])
    blind = [reason for night in newest for reason in blind_texts(night.findings)]
    reasons = [*_dead_checks(settings), *_Rules(settings, files, nights, day).dead(), *blind]
    if reasons:
        raise DoctorWarning("; ".join([text, *reasons]))
    return text


def lacking_tags(settings: Settings, tags: Collection[str]) -> list[str]:
    """Why rules that are for each value of a tag cannot fire: no row of a log has the tag."""
    reasons = (
        why_it_cannot_fire(rule.model_copy(update={"max_drop": None}), Known(tags=tags))
        for rule in settings.alerts.rules or ()
    )
    return list(dict.fromkeys(f"{reason}, which a rule is for" for reason in reasons if reason))


def _dead_checks(settings: Settings) -> list[str]:
    """The limits on a share of the rows that no share exceeds."""
    alerts = settings.alerts
    values = {alerts.limit_keys[name]: alerts.limit(name) for name in _SHARES}
    values["max_unseen"] = alerts.max_unseen
    return [f"{name}: {value:g} cannot fire" for name, value in values.items() if value >= 1]


@dataclass(frozen=True)
class _Rules:
    """The rules of the settings, and the last nights of the store."""

    settings: Settings
    files: Files
    nights: Sequence[Manifest]
    day: date

    def dead(self) -> Iterator[str]:
        """Why rules cannot fire, in words. A default rule is only for what the nights scored."""
        rules = self.settings.alerts.rules
        for rule in DEFAULT_RULES if rules is None else rules:
            known = self._known(rule)
            if (rules is not None or known.rows) and (why := why_it_cannot_fire(rule, known)):
                limit, by = rule.limits[-1].partition(" versus ")[0], rule.by
                what = f"{limit} of {rule.metric}{f' by {by}' if by else ''}"
                yield f"{what} cannot fire: {why}"

    def _known(self, rule: Rule) -> Known:
        """What the nights say. The means of a tag's values are not in them."""
        known = [one for night in self.nights if (one := night.summary(rule.metric)) and one.scored]
        newest = [one for one in known if one.fingerprint == known[-1].fingerprint]
        means = [one.mean for one in newest if one.mean is not None]
        return Known(
            mean=fmean(means) if means and rule.by is None else None,
            rows=max((one.scored for one in known), default=None),
            missing=self._missing(rule),
        )

    def _missing(self, rule: Rule) -> str:
        """Why a rule will have no night to compare with; empty where it will have one."""
        kind, _, run = rule.versus.partition(":")
        if kind == "pinned" and self.nights and Runs(self.files).named(run) is None:
            return f"there is no run {run} in the store"
        if kind != "serving" or not self.nights:
            return ""
        built = any(night.source.index_builds for night in self.nights)
        serving = built or find_serving(self.files, self.settings.dataset, self.day)
        return "" if serving else "the serving index build is not known"


__all__ = ["DoctorWarning", "lacking_tags", "rules_text"]
