"""A gate of two logs, with no build, no store and no settings: is the second worse than the first?

It is the gate of index builds with a log on either side, in a temporary store.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import islice

from ragmetrics.comparison import run_gate
from ragmetrics.config import GateRule, Settings, with_overrides
from ragmetrics.errors import InputError
from ragmetrics.logs import log_set
from ragmetrics.pipeline.evaluation import Progress, bring_judges
from ragmetrics.pipeline.log_check import CheckReport, check_logs
from ragmetrics.records import Gate, JudgeInfo, LogRow, make_index_build
from ragmetrics.scoring import chosen_metrics
from ragmetrics.storage import open_store
from ragmetrics.text import clean

BY_IDS = ("hit_rate", "id_recall", "mrr")
"""Metrics that need no judge."""
BY_JUDGE = ("context_relevance", "context_recall")


def gate_logs(
    settings: Settings,
    before: str,
    after: str,
    *,
    metrics: Sequence[str] | None = None,
    judged: bool = False,
    max_drop: float = 0.05,
    progress: Progress | None = None,
) -> Gate:
    """The verdict on the log `after` against the log `before`, over the questions of both.

    Each of `metrics` has a limit on its drop. Without them the settings' `gate: rules:` apply; else
    the metrics by ids (or texts) of expected passages that rows of both logs have the fields for,
    and, if `judged` or where there are none, context relevance and context recall by the judge of
    the settings. Nothing is stored but replies of paid judges, in the store of the settings.

    Raises InputError for a log without rows, the same log twice, logs that share no question, and
    logs whose rows no metric can score.
    """
    with tempfile.TemporaryDirectory(prefix="ragmetrics-") as folder:
        kept = open_store(settings)
        own = settings.model_copy(update={"store": folder, "retriever": None, "labels": None})
        ruled = _with_rules(own, (before, after), metrics, judged=judged, max_drop=max_drop)
        bring_judges(ruled, kept)
        asked = {"dataset": own.dataset, "build": "after", "logs": after, "serving": "before"}
        gate = run_gate(ruled, make_index_build(asked), progress, before=before, kept=kept)
    if not gate.metrics:
        raise InputError("; ".join(gate.reasons))
    absent = gate.missing_why.get("absent", 0)
    if absent and all(metric.missing == metric.asked for metric in gate.metrics):
        raise InputError(_nothing_shared(own, before, after))
    return gate.model_copy(
        update={"build": after, "serving": before, "judge": _judge(gate, judged=judged)}
    )


def _with_rules(
    settings: Settings,
    logs: tuple[str, str],
    metrics: Sequence[str] | None,
    *,
    judged: bool,
    max_drop: float,
) -> Settings:
    """The settings with a rule for each metric of the gate."""
    if metrics is None and settings.gate.rules is not None:
        return settings
    if metrics is None:
        reports = [check_logs(settings, [log]) for log in logs]
        for log, report in zip(logs, reports, strict=True):
            if not report.rows and report.read.note:
                raise InputError(f"{log}: {report.read.note}")
        metrics = _metrics_of(settings, reports, judged=judged)
    known = {metric.name for metric in chosen_metrics(settings)}
    more = [name for name in metrics if name not in known]
    chosen = with_overrides(settings, metrics=[*settings.metrics, *more])
    rules = tuple(GateRule(metric=name, max_drop=max_drop) for name in metrics)
    return chosen.model_copy(update={"gate": chosen.gate.model_copy(update={"rules": rules})})


def _metrics_of(settings: Settings, reports: Sequence[CheckReport], *, judged: bool) -> list[str]:
    """The metrics that rows of both logs have the fields for. Raises InputError without one."""

    def usable(names: Sequence[str]) -> list[str]:
        return [name for name in names if all(report.runnable[name] for report in reports)]

    by_ids = usable(BY_IDS)
    scored = {metric.name for metric in chosen_metrics(settings)}
    by_judge = usable([name for name in BY_JUDGE if name in scored])
    chosen = [*by_ids, *(by_judge if judged or not by_ids else ())]
    if not chosen and all(report.rows for report in reports):
        raise InputError(
            "the rows of both logs have what no chosen metric needs: log reference_context_ids and "
            "retrieved_context_ids, which need no judge, or name others with --metrics"
        )
    return chosen or [*BY_JUDGE]  # of logs without rows the gate says why


def _judge(gate: Gate, *, judged: bool) -> JudgeInfo:
    """The judge of a gate; one that nobody chose has a note on what would be better."""
    if judged or any(metric.metric in BY_IDS for metric in gate.metrics):
        return gate.judge
    note = "--judge names another; logs with reference_context_ids need none"
    return gate.judge.model_copy(update={"note": "; ".join(filter(None, [gate.judge.note, note]))})


def _nothing_shared(settings: Settings, *logs: str) -> str:
    """The sentence on logs that share no question, with one of each: a wrong field shows."""
    asked = []
    for log in logs:
        rows = (row for row in log_set(settings, log).read() if isinstance(row, LogRow))
        asked += [f"{log} asks {clean(row.user_input, 80)!r}" for row in islice(rows, 1)]
    return (
        f"the logs share no question: {' and '.join(asked)}. Ask both the same questions, as those "
        "of a golden set, or name the question's field under `columns:` of ragmetrics.yaml"
    )
