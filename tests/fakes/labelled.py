"""Labelled rows made to measure, and judges that answer them as told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ragmetrics.config import make_settings
from ragmetrics.logs import log_set
from ragmetrics.people.calibration.labelled import read_labelled
from ragmetrics.people.calibration.labelled_sets import TARGETS, LabelQuestion
from ragmetrics.records import Rejected
from tests.fakes.logs import write_jsonl

OTHER = "Ferries leave the harbour every hour. They carry bicycles."
Reply = Callable[[str, LabelQuestion], "str | None"]
"""From a metric and a question about a row to a reply; None for none."""


def make_labelled(count: int = 10, **fields: Any) -> list[dict[str, Any]]:
    """Rows of two contexts, of which one answers: the first in even rows, else the second.

    Every third row's reference has a statement that no context supports. `fields` are set on
    every row; `None` removes one.
    """
    rows = [_row(number) | fields for number in range(count)]
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def relabelled(row: Mapping[str, Any], **labels: Any) -> dict[str, Any]:
    """The row with other labels; `None` removes one."""
    changed = {**row["labels"], **labels}
    return {**row, "labels": {name: one for name, one in changed.items() if one is not None}}


def right(metric: str, question: LabelQuestion) -> str:
    """The reply of a judge that agrees with every label; support in part is none."""
    flags = [label == 1 for label in question.labels]
    if metric == "context_relevance":
        return json.dumps({"grade": 2 * int(flags[0])})
    if metric == "context_relevancy":
        return json.dumps({"needed": [n for n, flag in enumerate(flags, 1) if flag]})
    return json.dumps({"supported": [int(flag) for flag in flags]})


def wrong(metric: str, question: LabelQuestion) -> str:
    """The reply of a judge that denies every label."""
    turned = tuple(float(label != 1) for label in question.labels)
    return right(metric, LabelQuestion(question.ask, question.units, turned))


def write_judge(path: Path, rows: Path, reply: Reply = right) -> str:
    """Write a recording that answers what is asked of labelled rows; the judge's name."""
    lines: dict[str, dict[str, str]] = {}
    for item in _read(rows):
        for target in TARGETS:
            for question in target.questions(item):
                if (said := reply(target.metric, question)) is not None:
                    ask = question.ask
                    line = {"key": ask.key, "prompt": ask.prompt.name, "reply": said}
                    lines.setdefault(ask.key, line)
    write_jsonl(path, lines.values())
    return f"recorded:{path}"


def _read(rows: Path) -> Iterable[Any]:
    logs = log_set(make_settings({}), str(rows))
    return (item for item in read_labelled(logs) if not isinstance(item, Rejected))


def _row(number: int) -> dict[str, Any]:
    answer = f"The height of tower {number} is {100 + number} metres. It has {number} lifts."
    first = answer.index(" It has")
    place = number % 2
    contexts = [OTHER, OTHER]
    contexts[place] = answer
    spans = [[[0, 37], [38, len(OTHER)]] for _ in contexts]
    spans[place] = [[0, first], [first + 1, len(answer)]]
    statements = [{"text": answer[:first], "label": 1}]
    if number % 3 == 0:
        statements.append({"text": f"Tower {number} was closed for repairs.", "label": 0})
    return {
        "id": f"row-{number:04d}",
        "user_input": f"What is the height of tower {number}?",
        "retrieved_contexts": contexts,
        "reference": answer[:first],
        "labels": {
            "sentence_spans": spans,
            "relevant_sentences": [[[0, first]] if i == place else [] for i in range(2)],
            "chunk_relevance": [int(i == place) for i in range(2)],
            "chunk_relevance_scale": "0..1",
            "statement_support": statements,
        },
        "meta": {"lang": "en", "run": ("first", "second")[number % 2]},
    }
