"""Compares two sides, for `ragmetrics compare` and `ragmetrics.compare`.

Both sides are found first (`compared_side`). Then their stored scores are read, or their logs are
scored.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from ragmetrics.comparison import (
    ScoredSide,
    lost_between,
    make_comparison,
    read_nights,
    scored_side,
)
from ragmetrics.config import Judged, MetricChoice, Settings
from ragmetrics.errors import InputError
from ragmetrics.judges import Corpus
from ragmetrics.pipeline.compared_side import Found, Logs, Stored, find_side, find_stored, split_log
from ragmetrics.pipeline.evaluation import Progress, score_inputs, settings_of, temporary
from ragmetrics.records import (
    BUILDS,
    Comparison,
    JudgeBridge,
    JudgeInfo,
    LogRow,
    MetricChange,
    across_change,
)
from ragmetrics.scoring import (
    chosen_metrics,
    corpus_of,
    judge_info,
    metric_fingerprints,
    scoring_only,
    stored_bridge,
    summarise_run,
)
from ragmetrics.storage import RunRef, open_store
from ragmetrics.text import clean

ROWS = 5
"""Questions shown per metric."""
_MOST_TAGS = 20

_OWN_WEIGHTS = (
    "its words are weighted by their frequency in its own rows, because the word counts of the "
    "other side are no longer in the store; equal rows may get slightly different scores"
)


def compare(
    a: Any,
    b: Any = None,
    *,
    split: date | None = None,
    by: str | Sequence[str] | None = None,
    metrics: Sequence[MetricChoice] | MetricChoice | None = None,
    judge: Judged = None,
    model: str | None = None,
    base_url: str | None = None,
    golden: str | None = None,
    preset: str | None = None,
    settings: Settings | str | Path | None = None,
    store: str | None = None,
    rows: int = ROWS,
    progress: Progress | None = None,
    stored: bool = False,
) -> Comparison:
    """Compare two sides: is B worse than A, by how much, in which segments, on which questions?

    A side is `"build:NAME"`, a night (a date, or a text such as `"2026-11-19"`), the id of a run, a
    Result of `evaluate`, or any input of `evaluate`: a location of logs, dicts, a table. Nights,
    runs and builds are read from `store`, or from the store of the settings. Logs are scored now,
    with `metrics`, `judge`, `model`, `base_url`, `golden` and `preset` as in `evaluate`; replies of
    paid judges are cached in the store. `by` names tags whose values are compared too; without it,
    these are the tags that a night shows, and `significantly_worse` leaves them out. `rows` is the
    largest number of questions shown per metric. With `split`, the sides are the rows of the log
    `a` before that day and those from it on, and there is no `b`. With `stored`, only what the
    store has is compared: no log is read, and no retriever is asked.
    A metric that was scored differently on both sides (judge, prompts, parameters) is not compared,
    and its `reason` says so.
    Raises InputError when a side is not found, no metric can be compared or no scored row has a tag
    of `by`, and what `evaluate` raises.
    """
    chosen = settings_of(settings, metrics, judge, model, base_url, golden, preset=preset)
    chosen = chosen.model_copy(update={"store": store}) if store else chosen
    tags = [by] if isinstance(by, str) else None if by is None else list(dict.fromkeys(by))
    requested = None if metrics is None else [metric.name for metric in chosen_metrics(chosen)]
    with tempfile.TemporaryDirectory(prefix="ragmetrics-") as temporary:
        folder = Path(temporary)
        if stored:
            chosen = chosen.model_copy(update={"retriever": None})
            found: tuple[Found, Found] = find_stored(chosen, a), find_stored(chosen, b)
        else:
            found = _pair(chosen, a, b, split, folder)
        pair = _across_change(*found)
        names, refused = _comparable(chosen, pair, requested)
        if not names:
            raise InputError(_nothing_to_compare(refused))
        scored = scoring_only(chosen, set(names))
        sides = load_sides(scored, pair, names, tags or chosen.segments or (), folder, progress)
        _check_tags(tags or (), sides)
        comparison = make_comparison(*sides, names, tags, rows=rows, refused=refused)
        worse = bool(comparison.significantly_worse())
        lost = lost_between(chosen, *sides, worse=worse, build=sides[1].build)
        notices = [*_identical(*pair), *comparison.notices]
        return comparison.model_copy(update={"notices": notices, "lost_passages": lost})


def _check_tags(tags: Sequence[str], sides: Sequence[ScoredSide]) -> None:
    """Raise InputError for a tag that no scored row has; it names the tags that there are."""
    there = set().union(*(side.tags for side in sides))
    unknown = [tag for tag in tags if tag not in {*there, BUILDS}]
    if unknown:
        listed = ", ".join(clean(tag, 40) for tag in sorted(there)[:_MOST_TAGS])
        known = f"; tags of the rows: {listed}" if there else "; the rows have no tags"
        missing = ", ".join(clean(tag, 40) for tag in unknown)
        raise InputError(f"no scored row has the tag {missing}{known}")


def _pair(
    settings: Settings, a: Any, b: Any, split: date | None, folder: Path
) -> tuple[Found, Found]:
    """Both sides. Raises InputError where there is no second one, or one too many."""
    if (b is None) == (split is None):
        raise InputError("compare: two sides, or one log of many days and the day that splits it")
    if split:
        return split_log(settings, a, split, folder / "A")
    return find_side(settings, a, folder / "A"), find_side(settings, b, folder / "B")


def _across_change(a: Found, b: Found) -> tuple[Found, Found]:
    """Both sides, with nights of a judge that was replaced in the level of the new judge."""
    bridge = _bridge_of((a, b))
    first, second = (
        replace(side, nights=across_change(side.nights, bridge))
        if isinstance(side, Stored)
        else side
        for side in (a, b)
    )
    return first, second


def _bridge_of(sides: Sequence[Found]) -> JudgeBridge | None:
    """The change of judge in the store of the sides."""
    bridges = (stored_bridge(side.files) for side in sides if isinstance(side, Stored))
    return next(filter(None, bridges), None)


def _comparable(
    settings: Settings, sides: tuple[Found, Found], requested: Sequence[str] | None
) -> tuple[list[str], list[MetricChange]]:
    """The metrics that were scored in the same way on both sides; the others with the reason.

    Without requested metrics, a metric that a night lacks is not reported if the other side are
    logs: logs can be scored by any metric.
    """
    old, new = (fingerprints(settings, one) for one in sides)
    wanted = list(dict.fromkeys([*old, *new])) if requested is None else requested
    any_logs = any(isinstance(one, Logs) for one in sides)
    names, refused = [], []
    for metric in wanted:
        prints = ("before", old), ("after", new)
        lacking = [side for side, known in prints if metric not in known]
        if lacking and (requested is not None or not any_logs):
            reason = f"no row was scored {' and '.join(lacking)}"
            questions = 0 if metric not in old else None
            refused.append(MetricChange(metric=metric, reason=reason, questions_a=questions))
        elif not lacking and old[metric] == new[metric]:
            names.append(metric)
        elif not lacking:
            refused.append(MetricChange(metric=metric, reason=_difference(settings, sides)))
    return names, refused


def _difference(settings: Settings, sides: tuple[Found, Found]) -> str:
    """Why the scores of a metric on both sides are not comparable."""
    a, b = (judge_of(settings, one) for one in sides)
    if a.fingerprint == b.fingerprint:
        return "scored with other prompts, parameters, embeddings or another version after"
    bridge = _bridge_of(sides)
    return (
        f"scored in different ways: judge before {a.name} ({a.fingerprint}), after "
        f"{b.name} ({b.fingerprint})"
        f"{bridge.broken if bridge else ''}"
    )


def _nothing_to_compare(refused: Sequence[MetricChange]) -> str:
    """The reason why there is nothing to compare."""
    if not refused:
        return "the sides have no metric in common; choose the metrics for logs with --metrics"
    reasons: dict[str, list[str]] = {}
    for change in refused:
        reasons.setdefault(change.reason, []).append(change.metric)
    details = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
    return f"no metric can be compared. {details}. Score one side again in the way of the other"


def _identical(a: Found, b: Found) -> list[str]:
    """A notice when both sides are the same data, which is probably a mistake of the user."""
    if a.places() != b.places():
        return []
    return ["before and after are the same data, so there is no difference"]


def fingerprints(settings: Settings, side: Found) -> Mapping[str, str]:
    """The fingerprint of each metric of a side; for logs, of each chosen metric."""
    if isinstance(side, Logs):
        return metric_fingerprints(settings)
    return {
        summary.metric: summary.fingerprint
        for night in reversed(side.nights)
        for summary in night.metrics
    }


def judge_of(settings: Settings, side: Found) -> JudgeInfo:
    """The judge of a side; for logs, the chosen judge."""
    return judge_info(settings)[0] if isinstance(side, Logs) else side.nights[0].judge


def load_sides(
    settings: Settings,
    chosen: tuple[Found, Found],
    metrics: Sequence[str],
    tags: Sequence[str],
    folder: Path,
    progress: Progress | None = None,
) -> tuple[ScoredSide, ScoredSide]:
    """The scores of both sides by some metrics, with some tags. Logs are scored in a folder.

    A judge that weighs words by frequency uses the same word counts for both sides, so that equal
    rows get equal scores. Two logs use the counts of both; a log and a night use those of the
    night. Raises InputError for logs without a row, and what scoring raises.
    """
    weighed_by, sides = _weighed_by(settings, chosen), []
    for name, chosen_side in zip(("before", "after"), chosen, strict=True):
        if isinstance(chosen_side, Stored):
            sides.append(_stored(chosen_side, metrics, tags))
            continue
        run = temporary(settings, str(folder / name))
        cache, report = open_store(settings), _labelled(name, progress)
        try:
            staged = score_inputs(
                run, chosen_side.inputs, cache, progress=report, weighed_by=weighed_by
            )
        except InputError as error:
            raise InputError(f"{name}, {chosen_side.name}: {error}") from None
        files = open_store(run)
        manifest, _ = summarise_run(run, files, staged, datetime.now(UTC))
        side = _stored(Stored(chosen_side.name, files, [manifest]), metrics, tags)
        unlike = [_OWN_WEIGHTS] if weighed_by is None and settings.reads_corpus else []
        notices = [*side.notices, *unlike]
        sides.append(replace(side, notices=notices, usage=manifest.usage))
    return sides[0], sides[1]


def _weighed_by(settings: Settings, sides: tuple[Found, Found]) -> Corpus | None:
    """The word counts for logs; None when no judge needs them, or a night's counts are gone."""
    logs = [one for one in sides if isinstance(one, Logs)]
    if not settings.reads_corpus or not logs:
        return None
    for side in sides:
        if isinstance(side, Stored):
            return corpus_of(side.files, RunRef.of(side.nights[0]))
    corpus = Corpus()
    for log in sorted(logs, key=Logs.places):  # the order of A and B does not matter
        for item in (item for logset in log.inputs.logs for item in logset.read()):
            if isinstance(item, LogRow):
                corpus.add(item.retrieved_contexts, item.user_input)
    return corpus


def _labelled(side: str, progress: Progress | None) -> Progress | None:
    if progress is None:
        return None
    return lambda name, done, total: progress(f"{side}: {name}", done, total)


def _stored(side: Stored, metrics: Sequence[str], tags: Sequence[str]) -> ScoredSide:
    scores = {
        metric: read_nights(side.files, side.nights, metric, tags, side.build) for metric in metrics
    }
    return scored_side(side.name, side.files, side.nights, scores, side.build)
