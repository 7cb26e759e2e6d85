"""Writes docs/reference/store.md from the schemas of what is stored; a test compares the two.

python -m scripts.store_page

The text around the tables is `scripts/pages/store.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from ragmetrics.delivery.channel import Threads
from ragmetrics.delivery.outbox import MessageBatch
from ragmetrics.delivery.write_back.outbox import WaitingNight
from ragmetrics.judges.batch_records import BatchRecord
from ragmetrics.judges.reply_tables import SCHEMA as REPLY_SCHEMA
from ragmetrics.people.calibration.store import PART_SCHEMA
from ragmetrics.records import (
    AskedWay,
    Calibration,
    Comparison,
    Drift,
    FailedGate,
    Gate,
    LearnedModel,
    Manifest,
    Recalibration,
    Record,
    Silence,
    TopicModel,
    WhatIf,
)
from ragmetrics.scoring.both_judges import BridgeRows
from ragmetrics.scoring.budget.plan import BudgetPlan
from ragmetrics.scoring.reuse import Reuse
from ragmetrics.scoring.sampling.plan import SamplePlan
from ragmetrics.scoring.staging import Staged
from ragmetrics.storage.parts import ROW_SCHEMA, SCORE_SCHEMA
from scripts.pages import cell, read_parts, table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "store.md"

_RUN = "dt=2026-11-19/run=ID"
FILES: tuple[tuple[str, type[Record] | str, str], ...] = (
    (f"rows/{_RUN}/shard-000.parquet", "Rows", "the night's rows as they were read"),
    (f"rows/{_RUN}/staged.json", Staged, "what was found in reading them"),
    (f"rows/{_RUN}/corpus.bin", "", "how common its words are, for a judge that weighs them"),
    (f"rows/{_RUN}/reuse.json", Reuse, "parts of earlier runs that are reused"),
    (f"rows/{_RUN}/budget.json", BudgetPlan, "with a budget: which rows are judged"),
    (f"rows/{_RUN}/sample.json", SamplePlan, "on a sampled night: which rows are judged"),
    (
        f"rows/{_RUN}/bridge.json",
        BridgeRows,
        "after a [change of judge](../how-to/changing-the-judge.md): rows of both judges",
    ),
    (f"scores/{_RUN}/metric=NAME/shard-000.parquet", "Scores", "the scores of one metric"),
    (
        f"runs/{_RUN}.json",
        Manifest,
        "the manifest, written last: without it the run does not exist",
    ),
    ("history/2026-11.json", "History", "the month's manifests in outline"),
    (
        "judgements/judge=FINGERPRINT/prompt=NAME/LOW-HIGH.ID.parquet",
        "Judgements",
        "the judge's replies by key",
    ),
    (
        "judges/FINGERPRINT.json",
        AskedWay,
        "how a judge was asked otherwise than planned, if it was",
    ),
    ("batches/judge=FINGERPRINT/NONCE.json", BatchRecord, "a [batch](../how-to/batch.md) at work"),
    (f"quarantine/{_RUN}.jsonl", "", "rows that could not be read: file, line, reason"),
    (
        "alerts/outbox/2026-11-19.0.json",
        MessageBatch,
        "messages of a night that their channels have not confirmed",
    ),
    (
        "alerts/delivered/2026-11-19.0.json",
        MessageBatch,
        "what was notified of a night, and by which channels",
    ),
    ("alerts/silences/TIME.ID.json", Silence, "an alert that was acknowledged or snoozed"),
    ("alerts/threads.json", Threads, "where a Slack bot first posted each alert"),
    (
        "calibrations/set=NAME/judge=FINGERPRINT/TIME.json",
        Calibration,
        "a judge compared with a labelled set",
    ),
    (
        "calibrations/set=NAME/judge=FINGERPRINT/TIME.parquet",
        "Calibrations",
        "each verdict beside its label",
    ),
    (
        "calibrations/drift/set=NAME/judge=FINGERPRINT/TIME.json",
        Drift,
        "that calibration compared with the one before",
    ),
    (
        "calibrations/fits/ID.json",
        Recalibration,
        "what [`calibrate --fit`](../how-to/calibrating.md#probabilities) fitted; it never changes",
    ),
    (
        "calibrations/replies/dt=2026-11-19/judgements/...",
        "Judgements",
        "the judge's replies in that day's calibrations",
    ),
    (
        "learned/FINGERPRINT/0001.json",
        LearnedModel,
        "a [learned judge](../how-to/learned-judge.md), one file for each version",
    ),
    (
        "write-back/outbox/2026-11-19.RUN.TARGET.json",
        WaitingNight,
        "a night that a tracing tool has not confirmed",
    ),
    (
        "write-back/sent/dt=2026-11-19/TARGET/ID.json",
        "",
        "digests of the scores that it has: [write-back](../how-to/write-back.md)",
    ),
    ("gates/BUILD.json", Gate, "the verdict on an index build"),
    ("gates/compared/BUILD.json", Comparison, "how the build differs from the serving one"),
    ("gates/undecided/ID.json", FailedGate, "an event without a verdict, and why"),
    ("gates/rows/..., gates/scores/...", "Scores", "rows and scores of gates, as those of nights"),
    (
        "topics/model-2026-11-19.json",
        TopicModel,
        "[topics](../how-to/topics.md) from that night on",
    ),
    ("whatif/dt=2026-11-19.json", WhatIf, "[what would fix the night](../how-to/whatif.md)"),
    (
        "prune/TIME-0001.jsonl",
        "",
        "the files that [prune](#what-it-may-forget) removed, each with size and version",
    ),
    (
        "turns/backfill/000001",
        "",
        "the [backfill](../how-to/backfill.md) that runs in this bucket; empty once it has ended",
    ),
    (
        "dashboard/...",
        "",
        "the pages, and `metrics.prom` for [Prometheus](../how-to/monitoring.md)",
    ),
)

_COLUMNS: Mapping[str, tuple[pa.Schema, Mapping[str, str]]] = {
    "Scores": (
        SCORE_SCHEMA,
        {
            "id": "The row's id.",
            "question": "Hash of the normalised question: the cluster of the intervals.",
            "value": "Null if the row was not scored.",
            "status": "One of the [statuses](metrics.md).",
            "reason": "Why there is no value, or why it is 0.",
            "details": "JSON: grades, indices of needed sentences, verdicts.",
            "index_build": "",
            "language": "",
            "tags": "",
            "votes": "Values of a panel's judges, in the manifest's order.",
            "failed": "Judges of the panel without a usable verdict.",
            "spread": "Standard deviation of a judge's `repeats`; for a panel, their mean.",
            "cheap": "On a [sampled](../how-to/sampling.md) night, the cheap judge's score.",
            "probability": "With active sampling: the inclusion probability of a judged row.",
            "compared": "With active sampling, or where an earlier judge of a cascade failed: "
            "false for a judged row that rules do not compare.",
        },
    ),
    "Rows": (ROW_SCHEMA, dict.fromkeys(ROW_SCHEMA.names, "")),
    "Judgements": (
        REPLY_SCHEMA,
        {
            "key": "Hash of the row's normalised question (4 bytes), then of the request.",
            "reply": "UTF-8; of `prompt=embedding`, float32 numbers, least significant byte first.",
            "prompt_tokens": "",
            "completion_tokens": "",
            "judged_at": "",
        },
    ),
    "Calibrations": (
        PART_SCHEMA,
        {
            "metric": "",
            "id": "The row's id.",
            "question": "The cluster.",
            "unit": "`0`: context or statement; `0:2`: sentence 2 of context 0.",
            "content": "Equal if the same text was judged.",
            "label": "",
            "verdict": "",
            "strength": "The judge's grade on its own scale.",
            "status": "",
            "row": "",
        },
    ),
}


def page() -> str:
    """The whole page. Raises KeyError for a column without a meaning."""
    texts = read_parts("store")
    parts = [texts.pop(""), _files()]
    for title, text in texts.items():
        parts.append(f"## {title}\n\n{text}")
        if title in _COLUMNS:
            parts.append(_columns(*_COLUMNS[title]))
    return "\n".join(parts)


def _files() -> str:
    return table(
        ("file", "content", "what it is"),
        [(f"`{path}`", _content(content), cell(text)) for path, content, text in FILES],
    )


def _content(content: type[Record] | str) -> str:
    name = content if isinstance(content, str) else content.__name__
    page = "" if isinstance(content, str) else "records.md"
    return f"[{name}]({page}#{name.lower()})" if name else ""


def _columns(schema: pa.Schema, meanings: Mapping[str, str]) -> str:
    rows = [
        (
            f"`{column.name}`",
            f"`{column.type}`" + (", never null" if not column.nullable else ""),
            meanings[column.name],
        )
        for column in schema
    ]
    return table(("column", "type", "meaning"), rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
