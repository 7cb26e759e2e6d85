"""Comparing: what `ragmetrics compare` and `ragmetrics.compare` do."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragmetrics.comparison import make_comparison
from ragmetrics.config import Judged, MetricChoice, Settings, with_preset
from ragmetrics.errors import InputError
from ragmetrics.model import Comparison, MetricChange
from ragmetrics.pipeline.comparison_inputs import Found, Logs, find_side, fingerprints, judge_of
from ragmetrics.pipeline.comparison_loading import load_sides
from ragmetrics.pipeline.evaluation import Progress, settings_of
from ragmetrics.scoring import chosen_metrics, scoring_only

ROWS = 5
"""Questions shown per metric."""


def compare(
    a: Any,
    b: Any,
    *,
    by: str | Sequence[str] | None = None,
    metrics: Sequence[MetricChoice] | None = None,
    judge: Judged = None,
    model: str | None = None,
    base_url: str | None = None,
    golden: str | None = None,
    preset: str | None = None,
    settings: Settings | None = None,
    store: str | None = None,
    rows: int = ROWS,
    progress: Progress | None = None,
) -> Comparison:
    """Compare two sides: whether B is worse than A, by how much, where and by which questions.

    A side is `"build:NAME"`, a night (a date, or a text as `"2026-11-19"`), the id of a run, a
    Result of `evaluate`, or whatever `evaluate` takes: a place of logs, dicts, a table. Nights,
    runs and builds are found in the store, `store` or that of the settings; logs are scored now,
    by `metrics`, `judge`, `model`, `base_url`, `golden` and `preset` as in `evaluate`, and replies
    of paid judges are kept in the store. `by` names tags whose values are compared too, `rows` the
    most questions shown per metric.
    A metric that was scored in another way on both sides (judge, prompts, parameters) is not
    compared, and `reason` says so.
    Raises InputError where a side is not there, or no metric can be compared, and what `evaluate`
    raises.
    """
    chosen = with_preset(settings_of(settings, metrics, judge, model, base_url, golden), preset)
    chosen = chosen.model_copy(update={"store": store}) if store else chosen
    tags = [by] if isinstance(by, str) else list(dict.fromkeys(by or ()))
    asked = None if metrics is None else [one.name for one in chosen_metrics(chosen)]
    with tempfile.TemporaryDirectory(prefix="ragmetrics-") as made:
        folder = Path(made)
        found = find_side(chosen, a, folder / "A"), find_side(chosen, b, folder / "B")
        names, refused = _comparable(chosen, found, asked)
        if not names:
            raise InputError(_nothing(refused))
        scored = scoring_only(chosen, set(names))
        sides = load_sides(scored, found, names, tags, folder, progress)
        comparison = make_comparison(*sides, names, tags, rows=rows, refused=refused)
        notices = [*_same(*found), *comparison.notices]
        return comparison.model_copy(update={"notices": notices})


def _comparable(
    settings: Settings, found: tuple[Found, Found], asked: Sequence[str] | None
) -> tuple[list[str], list[MetricChange]]:
    """The metrics that both sides are scored by in the same way; the others, and why not.

    Where nobody asked for a metric, one that a night lacks is no news: logs could be scored by any.
    """
    old, new = (fingerprints(settings, one) for one in found)
    wanted = list(dict.fromkeys([*old, *new])) if asked is None else asked
    any_logs = any(isinstance(one, Logs) for one in found)
    names, refused = [], []
    for metric in wanted:
        lacking = [side for side, prints in (("A", old), ("B", new)) if metric not in prints]
        if lacking and (asked is not None or not any_logs):
            told = (
                f"{' and '.join(lacking)} {'was' if len(lacking) == 1 else 'were'} not scored by it"
            )
            nothing_to_lose = 0 if metric not in old else None
            refused.append(MetricChange(metric=metric, reason=told, questions_a=nothing_to_lose))
        elif not lacking and old[metric] == new[metric]:
            names.append(metric)
        elif not lacking:
            refused.append(MetricChange(metric=metric, reason=_otherwise(settings, found)))
    return names, refused


def _otherwise(settings: Settings, found: tuple[Found, Found]) -> str:
    """That a metric was scored in another way, and in which."""
    a, b = (judge_of(settings, one) for one in found)
    if a.fingerprint == b.fingerprint:
        return (
            "A and B were scored with different prompts, parameters, embeddings or versions of it"
        )
    return (
        "A and B were scored in different ways: judge of A "
        f"{a.name} ({a.fingerprint}), of B {b.name} ({b.fingerprint})"
    )


def _nothing(refused: Sequence[MetricChange]) -> str:
    """Why there is nothing to compare, in one sentence."""
    if not refused:
        return "A and B have no metric in common; --metrics names what logs are to be scored by"
    reasons: dict[str, list[str]] = {}
    for one in refused:
        reasons.setdefault(one.reason, []).append(one.metric)
    told = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
    return f"no metric can be compared. {told}. Score one side again, as the other was"


def _same(a: Found, b: Found) -> list[str]:
    """A slip that would look like a clean result."""
    if a.places() != b.places():
        return []
    return ["A and B are the same: nothing can differ"]
