"""People's labels in the life of a store: checked, and the rows that are worth a label.

These rows are a file for a person: rows of a labels file whose values are empty. Three more fields
have the texts that a person needs: `contexts`, `reference_sentences` and `response`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ragmetrics.config import Settings
from ragmetrics.errors import InputError
from ragmetrics.logs import write_rows_for_people
from ragmetrics.people.labels.label_file import UNITS, label_metrics, read_labels
from ragmetrics.people.labels.labelled_scores import LabelledScores
from ragmetrics.people.labels.people_means import join_all, report_of, with_people
from ragmetrics.people.labels.row_draw import draw_rows, suggest_rows
from ragmetrics.records import LabelReport, LabelSuggestion, Manifest
from ragmetrics.storage import Files, Runs, open_store

_EARLIER = 60
"""Nights before the newest whose labels are used, as in a night."""
_FIRST = ("context_relevance", "context_recall")
"""Metrics that are labelled by default, where they are scored."""
COLUMNS: Mapping[str, str] = {metric: column for column, (metric, _) in UNITS.items()}
"""The column for the labels of a metric that has units."""


@dataclass(frozen=True)
class SuggestedLabels:
    """Rows that are worth a label."""

    night: date
    rows: list[LabelSuggestion]
    uniform: bool
    """Whether the store says nothing on which rows are uncertain."""


def check_labels(
    settings: Settings, place: str | None = None
) -> tuple[LabelReport, Manifest | None]:
    """How the labels at a place, by default that of the settings, are used on the newest night; and
    this night as people would say it, None without a night.

    Raises InputError where there is no labels file, StoreError where the store is down.
    """
    chosen = settings.model_copy(update={"labels": place}) if place else settings
    if chosen.labels is None:
        raise InputError("there are no labels: name a place by `labels:` in the settings")
    files = open_store(chosen)
    known = Runs(files).nights(last=_EARLIER + 1)
    if not known:
        return label_report(chosen), None
    *earlier, newest = known
    found = with_people(chosen, files, newest, earlier)
    if found.labels is None or (found.labels.problem and not found.labels.labels):
        raise InputError(found.labels.problem if found.labels else "no label was read")
    return found.labels, found


def label_report(settings: Settings) -> LabelReport:
    """What the file of labels has, none of them joined with a score. Raises as `check_labels`."""
    return report_of(read_labels(settings), {})


def suggest_labels(
    settings: Settings,
    out: Path | None,
    night: date | None = None,
    metrics: Sequence[str] = (),
    count: int = 20,
) -> SuggestedLabels:
    """Draw rows of the newest night, or of a date, and write them as .csv or .jsonl.

    Raises InputError where the store has no such night or the night no such metric, StoreError
    where the store is down.
    """
    files = open_store(settings)
    chosen, earlier = _night(files, night)
    names = _metrics(settings, chosen, metrics)
    joined = _joined(settings, files, chosen, earlier)
    known = {name: joined[name].rows if name in joined else [] for name in names}
    labelled = [
        {(row.question, row.id) for row in rows if row.night == chosen.date}
        for rows in known.values()
    ]
    draw = draw_rows(files, chosen, known, set.intersection(*labelled))
    found = suggest_rows(files, chosen, names, draw, count)
    if out is not None:
        write_label_suggestions(out, found)
    return SuggestedLabels(chosen.date, found, draw.uniform)


def _night(files: Files, day: date | None) -> tuple[Manifest, list[Manifest]]:
    known = Runs(files).up_to(day, _EARLIER + 1)
    if not known:
        raise InputError("the store has no night yet: run one first")
    return known[-1], known[:-1]


def _metrics(settings: Settings, night: Manifest, wanted: Sequence[str]) -> list[str]:
    scored = [
        summary.metric
        for summary in night.metrics
        if summary.scored and summary.metric in label_metrics(settings)
    ]
    if unknown := [one for one in wanted if one not in scored]:
        raise InputError(f"{unknown[0]}: night {night.date} has no score of it; it has {scored}")
    found = list(wanted) or [one for one in _FIRST if one in scored] or scored[:1]
    if not found:
        raise InputError(f"night {night.date} has no scored row")
    return found


def _joined(
    settings: Settings, files: Files, night: Manifest, earlier: Sequence[Manifest]
) -> dict[str, LabelledScores]:
    if settings.labels is None:
        return {}
    try:
        read = read_labels(settings)
    except InputError:  # the first suggestions come before the first labels
        return {}
    return join_all(files, read.labels, night, earlier)


def label_record(one: LabelSuggestion) -> dict[str, Any]:
    """A suggestion as a row of a labels file; only its values are to be filled in.

    Where nothing was retrieved, nothing is relevant: this needs no person.
    """
    known = {"context_relevance": 0} if not one.contexts else {}
    return {
        "id": one.id,
        "date": one.night.isoformat(),
        "sampling_weight": one.sampling_weight,
        "person": "",
        **{COLUMNS.get(metric, metric): "" for metric in one.metrics},
        **{metric: value for metric, value in known.items() if metric in one.metrics},
        "user_input": one.user_input,
    }


def write_label_suggestions(path: Path, suggestions: Iterable[LabelSuggestion]) -> None:
    """Write suggestions as .csv or .jsonl. Raises InputError for another ending."""
    records = [
        label_record(suggestion)
        | {
            "contexts": suggestion.contexts,
            "reference_sentences": suggestion.sentences,
            "response": suggestion.response or "",
        }
        for suggestion in suggestions
    ]
    write_rows_for_people(path, records, [] if records else ["user_input"])
