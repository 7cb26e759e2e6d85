"""Nights that happened, as the alert rules see them: manifests and scores made in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pandas as pd

from ragmetrics.config import AlertSettings, Rule
from ragmetrics.delivery.state import AlertStates, advance_states
from ragmetrics.delivery.state_fold import fold_states
from ragmetrics.records import Finding, JudgeInfo, Manifest, Source, Status
from ragmetrics.records.judging import Usage
from ragmetrics.rules import NightContext, evaluate_rules
from ragmetrics.rules.root_cause import explain_root_cause
from ragmetrics.scoring import MetricScores, find_segments, summarise

TONIGHT = date(2026, 11, 19)
NOISY = [0.6, 1.0] * 20
"""Forty questions with mean 0.8."""


@dataclass(frozen=True)
class Past:
    """A night that happened: its manifest and its scores by metric."""

    manifest: Manifest
    scores: dict[str, MetricScores]


def scores(
    values: Sequence[float | None],
    metric: str = "context_recall",
    index_build: str | None = None,
    **tags: Sequence[str],
) -> MetricScores:
    """One row per question; None is a row that the judge failed on."""
    table = pd.DataFrame(
        {
            "question": [f"q{i:03}" for i in range(len(values))],
            "value": pd.Series(values, dtype="float64"),
            "status": [
                (Status.JUDGE_FAILED if value is None else Status.SCORED).value for value in values
            ],
            "reason": None,
            "votes": None,
            "failed": None,
            "spread": float("nan"),
            "index_build": index_build,
            "shard": 0,
            "position": range(len(values)),
        }
    )
    return MetricScores(metric, table.assign(**{f"tag:{tag}": tags[tag] for tag in tags}))


def a_night(
    *scored: MetricScores,
    ago: int = 0,
    judge: str = "judge-1",
    run: str = "run",
    findings: Sequence[Finding] = (),
    shown: Sequence[str] | None = None,
    **source: Any,
) -> Past:
    """A night so many days ago, scored by a judge; `source` says what was read."""
    builds = scored[0].table["index_build"].value_counts().to_dict() if scored else {}
    segments = find_segments(scored[0], shown) if scored else []
    moment = datetime(2026, 11, 20, tzinfo=UTC)
    manifest = Manifest(
        dataset="demo",
        date=TONIGHT - timedelta(ago),
        run=run,
        started_at=moment,
        finished_at=moment,
        ragmetrics="0",
        source=Source(
            **{"logs": "logs", "files": 1, "rows": 100, "index_builds": builds, **source}
        ),
        judge=JudgeInfo(name="judge", fingerprint=judge),
        shards=1,
        metrics=[summarise(one, judge) for one in scored],
        segments=[summarise(one, judge, segment) for segment in segments for one in scored],
        findings=list(findings),
        worst=[],
        usage=Usage(),
    )
    return Past(manifest, {one.metric: one for one in scored})


def view(
    tonight: Past,
    *earlier: Past,
    runs: Sequence[Past] = (),
    serving: Sequence[str] = (),
    book: AlertStates | None = None,
    mix_tags: Sequence[str] | None = None,
) -> NightContext:
    """What the rules see tonight; `runs` are in the store, but do not speak for their nights.
    The `book` says what people were told before.
    """
    known = {(one.manifest.date, one.manifest.run): one for one in (*earlier, *runs)}
    return NightContext(
        tonight.manifest,
        tonight.scores,
        [one.manifest for one in earlier],
        lambda one, metric: known[one.date, one.run].scores[metric],
        find_run={run: one.manifest for (_, run), one in known.items()}.get,
        serving=lambda: serving,
        notified=book.notified if book else {},
        states=(book or fold_states([one.manifest for one in earlier], (), 7)).states,
        mix_tags=mix_tags,
    )


def hold(rules: Sequence[Rule] | None, tonight: Past, *earlier: Past, **more: Any) -> list[Finding]:
    """All findings of tonight; earlier nights are given oldest first."""
    store = {name: more.pop(name) for name in ("runs", "serving") if name in more}
    settings = AlertSettings(rules=None if rules is None else tuple(rules), **more)
    return evaluate_rules(settings, view(tonight, *earlier, mix_tags=settings.mix_tags, **store))


def hold_rules(settings: AlertSettings, tonight: Past, earlier: Sequence[Past]) -> list[Finding]:
    """All findings of tonight, by some settings."""
    return evaluate_rules(settings, view(tonight, *earlier, mix_tags=settings.mix_tags))


def metric_findings(*arguments: Any, **more: Any) -> list[Finding]:
    """The findings of metric rules alone."""
    return [one for one in hold(*arguments, **more) if one.kind == "metric"]


def the(findings: Sequence[Finding], kind: str) -> Finding:
    """The one finding of a kind."""
    (found,) = [one for one in findings if one.kind == kind]
    return found


def recall(**limits: Any) -> list[Rule]:
    """One rule on recall."""
    return [Rule(metric="context_recall", **limits)]


def fallen(by: float, values: Sequence[float] = NOISY) -> list[float]:
    """The same questions, each answered so much worse."""
    return [value - by for value in values]


def uneven(by: float, spread: float = 0.22, shift: int = 0) -> list[float]:
    """The same questions, some much worse and some better: a drop of doubtful significance."""
    return [0.5 - by + (spread if (i + shift) % 4 < 2 else -spread) for i in range(20)]


def story(
    rules: Sequence[Rule],
    *nights: Sequence[float] | MetricScores,
    judges: Sequence[str] = (),
    serving: Sequence[Sequence[str]] = (),
    **more: Any,
) -> list[Finding]:
    """Nights in a row, judged, explained and told: the one metric finding of each.

    Of each night the judge, `judge-1` if none is named, and the builds that were promoted.
    """
    book, past, told = AlertStates(), list[Past](), list[Finding]()
    settings = AlertSettings(rules=tuple(rules), **more)
    for place, values in enumerate(nights):
        scored = values if isinstance(values, MetricScores) else scores(values)
        judge = judges[place] if judges else "judge-1"
        tonight = a_night(scored, ago=len(nights) - place - 1, judge=judge)
        night = view(tonight, *past, book=book, serving=serving[place] if serving else ())
        found, day = evaluate_rules(settings, night), tonight.manifest.date
        book, findings = advance_states(book, found, day, 7, run=tonight.manifest.run)
        findings = explain_root_cause(night, findings)
        judged = tonight.manifest.model_copy(update={"findings": findings})
        past.append(replace(tonight, manifest=judged))
        told.append(the(findings, "metric"))
    return told
