r"""Ragas data sets, 0.1 to 0.4.

A retrieval is each sample of a single turn.

A data set of 0.2 to 0.4 needs no preset. It also reads the columns of 0.1 (`question`, `contexts`, `answer`,
`ground_truth`, and the first of `ground_truths`).

```python
dataset.to_jsonl("samples.jsonl")  # a ragas EvaluationDataset
```

```jsonl
{"user_input": "Do I need to bring a helmet?", "retrieved_contexts": ["Helmets are lent free of charge at every station with staff.", "Stations are open from 6 to 23 hours."], "retrieved_context_ids": ["faq-1", "faq-9"], "response": "No, helmets are lent at staffed stations.", "reference": "Helmets are lent free of charge.", "query_style": "WEB_SEARCH_LIKE"}
{"question": "How much is the deposit?", "contexts": ["A deposit of 50 euros is held on your card until the bicycle is back."], "answer": "50 euros.", "ground_truth": "The deposit is 50 euros."}
{"question": "What does a lost key cost?", "contexts": ["Lost keys cost 25 euros. Report them in the app."], "answer": "25 euros.", "ground_truths": ["A lost key costs 25 euros."]}
{"user_input": [{"content": "Hello", "type": "human"}, {"content": "How can I help?", "type": "ai"}], "reference": "The agent greets."}
{"question": "When do stations open?", "contexts": "Stations are open from 6 to 23 hours."}
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragmetrics.logs.exported_values import about, at, structured
from ragmetrics.logs.preset import Preset, Skipped, Span
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


ragas = Preset(
    "ragas",
    __doc__,
    _read,
    frozenset([*FIELDS, *_OLD.values(), *_TAGS, "ground_truths"]),
    rows=True,
)
