"""Compares two sides, for `ragmetrics compare` and `ragmetrics.compare`."""

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
    """Compare two sides: is B worse than A, by how much, in which segments, on which questions?

    A side is `"build:NAME"`, a night (a date, or a text such as `"2026-11-19"`), the id of a run, a
    Result of `evaluate`, or any input of `evaluate`: a location of logs, dicts, a table. Nights,
    runs and builds are read from `store`, or from the store of the settings. Logs are scored now,
    with `metrics`, `judge`, `model`, `base_url`, `golden` and `preset` as in `evaluate`; replies of
    paid judges are cached in the store. `by` names tags whose values are compared too. `rows` is
    the largest number of questions shown per metric.
    A metric that was scored differently on both sides (judge, prompts, parameters) is not compared,
    and its `reason` says so.
    Raises InputError when a side is not found or no metric can be compared, and what `evaluate`
    raises.
    """
    chosen = with_preset(settings_of(settings, metrics, judge, model, base_url, golden), preset)
    chosen = chosen.model_copy(update={"store": store}) if store else chosen
    tags = [by] if isinstance(by, str) else list(dict.fromkeys(by or ()))
    requested = None if metrics is None else [one.name for one in chosen_metrics(chosen)]
    with tempfile.TemporaryDirectory(prefix="ragmetrics-") as made:
        folder = Path(made)
        found = find_side(chosen, a, folder / "A"), find_side(chosen, b, folder / "B")
        names, refused = _comparable(chosen, found, requested)
        if not names:
            raise InputError(_nothing_to_compare(refused))
        scored = scoring_only(chosen, set(names))
        sides = load_sides(scored, found, names, tags, folder, progress)
        comparison = make_comparison(*sides, names, tags, rows=rows, refused=refused)
        notices = [*_identical(*found), *comparison.notices]
        return comparison.model_copy(update={"notices": notices})


def _comparable(
    settings: Settings, found: tuple[Found, Found], requested: Sequence[str] | None
) -> tuple[list[str], list[MetricChange]]:
    """The metrics that were scored in the same way on both sides; the others with the reason.

    Without requested metrics, a metric that a night lacks is not reported if the other side are
    logs: logs can be scored by any metric.
    """
    old, new = (fingerprints(settings, one) for one in found)
    wanted = list(dict.fromkeys([*old, *new])) if requested is None else requested
    any_logs = any(isinstance(one, Logs) for one in found)
    names, refused = [], []
    for metric in wanted:
        lacking = [side for side, prints in (("A", old), ("B", new)) if metric not in prints]
        if lacking and (requested is not None or not any_logs):
            reason = (
                f"{' and '.join(lacking)} {'was' if len(lacking) == 1 else 'were'} not scored by it"
            )
            questions = 0 if metric not in old else None
            refused.append(MetricChange(metric=metric, reason=reason, questions_a=questions))
        elif not lacking and old[metric] == new[metric]:
            names.append(metric)
        elif not lacking:
            refused.append(MetricChange(metric=metric, reason=_difference(settings, found)))
    return names, refused


def _difference(settings: Settings, found: tuple[Found, Found]) -> str:
    """Why the scores of a metric on both sides are not comparable."""
    a, b = (judge_of(settings, one) for one in found)
    if a.fingerprint == b.fingerprint:
        return (
            "A and B were scored with different prompts, parameters, embeddings or versions of it"
        )
    return (
        "A and B were scored in different ways: judge of A "
        f"{a.name} ({a.fingerprint}), of B {b.name} ({b.fingerprint})"
    )


def _nothing_to_compare(refused: Sequence[MetricChange]) -> str:
    """The reason why there is nothing to compare."""
    if not refused:
        return "A and B have no metric in common; choose the metrics for logs with --metrics"
    reasons: dict[str, list[str]] = {}
    for one in refused:
        reasons.setdefault(one.reason, []).append(one.metric)
    details = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
    return f"no metric can be compared. {details}. Score one side again in the way of the other"


def _identical(a: Found, b: Found) -> list[str]:
    """A notice when both sides are the same data, which is probably a mistake of the user."""
    if a.places() != b.places():
        return []
    return ["A and B are the same data, so there is no difference"]
