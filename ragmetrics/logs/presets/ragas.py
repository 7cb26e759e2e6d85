"""ragas: an EvaluationDataset saved as JSONL (0.2 to 0.4), or the columns of ragas 0.1.

Version 0.1 has the fields question, contexts, answer and ground_truth. Earlier versions have a list
ground_truths; ragas used its first item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragmetrics.logs.presets.base import Preset, Skipped, Span
from ragmetrics.logs.presets.values import about, at, structured
from ragmetrics.records import FIELDS

_OLD = {
    "user_input": "question",
    "retrieved_contexts": "contexts",
    "response": "answer",
    "reference": "ground_truth",
}
# Tags that test set generators write, each with few values.
_TAGS = ("synthesizer_name", "persona_name", "query_style", "query_length", "evolution_type")


def _read(record: Mapping[str, Any]) -> Iterator[Span | Skipped]:
    if isinstance(record.get("user_input"), list):
        yield Skipped("multi-turn sample: not a retrieval")
        return
    row: dict[str, Any] = {**about(record, **{name: at(record, name) for name in _TAGS}), **record}
    for new, old in _OLD.items():
        if at(row, new) is None and at(record, old) is not None:
            row[new] = record[old]
    truths = structured(record.get("ground_truths"))
    if at(row, "reference") is None and isinstance(truths, list) and truths:
        row["reference"] = truths[0]
    yield Span("sample", row, source=record)


PRESET = Preset(
    _read,
    frozenset([*FIELDS, *_OLD.values(), *_TAGS, "ground_truths"]),
    rows=True,
)
