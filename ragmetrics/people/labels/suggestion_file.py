"""Rows to be labelled as a file for a person: a row of a labels file whose values are empty.

Three more fields have the texts that a person needs: `contexts`, `reference_sentences` and
`response`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ragmetrics.logs import write_rows_for_people
from ragmetrics.people.labels.label_file import UNITS
from ragmetrics.records import LabelSuggestion

COLUMNS: Mapping[str, str] = {metric: column for column, (metric, _) in UNITS.items()}
"""The column for the labels of a metric that has units."""


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
