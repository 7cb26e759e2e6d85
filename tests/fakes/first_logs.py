"""Eight logs as teams have them, in as many layouts: some good nights, and a last one on which the
index has lost the pages of one section.

Each is written below a folder; what `ragmetrics init` is given is returned.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from random import Random
from typing import Any

FIRST = date(2026, 11, 16)
NIGHTS = 3
LAST = FIRST + timedelta(NIGHTS - 1)
LOST = "billing"
ROWS = 32
_PLANS = ("Basic", "Team", "Office", "School", "Clinic", "Studio", "Harbour", "Orchard", "Garden")
_SECTIONS = {
    "billing": ("When is the invoice for {} sent?", "The invoice for {} is sent on day {}."),
    "storage": ("How much can I store with {}?", "With {} you can store {} gigabytes."),
    "support": ("How fast is support for {}?", "Support for {} replies within {} hours."),
    "export": ("How large is an export from {}?", "An export from {} has up to {} thousand rows."),
}
_OTHERS = (
    "The canteen offers soup, bread and salad on weekdays.",
    "Ferries leave the harbour every hour and carry bicycles.",
)


@dataclass(frozen=True)
class Asked:
    """One question of a night, and what was retrieved for it."""

    id: str
    moment: datetime
    question: str
    answer: str
    ids: Sequence[str]
    passages: Sequence[str]
    section: str
    build: str


Write = Callable[[Path], str]


def night(day: date) -> list[Asked]:
    """The questions of a night; on the last one, the pages of the lost section are gone."""
    pages = [
        (section, plan, number, *texts)
        for section, texts in _SECTIONS.items()
        for number, plan in enumerate(_PLANS)
    ]
    rows = []
    for row, (section, plan, number, question, fact) in enumerate(
        Random(day.toordinal()).sample(pages, ROWS)
    ):
        answer, lost = fact.format(plan, number + 2), day == LAST and section == LOST
        known = {} if lost else {f"{section}-{plan.lower()}": answer}
        known |= {f"other-{other}": text for other, text in enumerate(_OTHERS)}
        rows.append(
            Asked(
                id=f"{day}-{row}",
                moment=datetime.combine(day, time(8), UTC) + timedelta(minutes=row),
                question=question.format(plan),
                answer=answer,
                ids=[*known],
                passages=[*known.values()],
                section=section,
                build=f"index-{day}",
            )
        )
    return rows


def nights() -> Iterator[tuple[date, list[Asked]]]:
    """All nights, with their questions."""
    for number in range(NIGHTS):
        day = FIRST + timedelta(number)
        yield day, night(day)


def lines(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Write records as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


def table(path: Path, records: Sequence[Mapping[str, str]]) -> None:
    """Write records as CSV, with quotes as Postgres writes them."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*records[0]])
        writer.writeheader()
        writer.writerows(records)


def postgres_array(texts: Sequence[str]) -> str:
    """Texts as Postgres writes an array of them."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"


def langsmith_export(folder: Path) -> str:
    """Runs by line, a file a night. The root run has the tenant and the version of the index."""
    for day, rows in nights():
        runs = []
        for row in rows:
            root, child = f"root-{row.id}", f"run-{row.id}"
            metadata = {"tenant": row.section, "index_version": row.build, "user_id": row.id}
            runs += [
                {
                    **_run(root, root, None, row, "chain"),
                    "inputs": {"question": row.question},
                    "outputs": {"answer": row.answer},
                    "extra": {"metadata": metadata},
                },
                {
                    **_run(child, root, root, row, "retriever"),
                    "inputs": {"query": row.question},
                    "outputs": {"documents": _documents(row)},
                },
            ]
        lines(folder / f"runs-{day}.jsonl", runs)
    return "."


def _run(name: str, trace: str, parent: str | None, row: Asked, kind: str) -> dict[str, Any]:
    return {
        "id": name,
        "trace_id": trace,
        "parent_run_id": parent,
        "name": kind,
        "run_type": kind,
        "start_time": row.moment.replace(tzinfo=None).isoformat(),
        "session_name": "help-desk",
    }


def _documents(row: Asked) -> list[dict[str, Any]]:
    return [
        {"id": name, "page_content": text, "metadata": {"source": "faq.md"}}
        for name, text in zip(row.ids, row.passages, strict=True)
    ]


def home_grown(folder: Path) -> str:
    """Nested records of a service, with keys of its own, in a folder a night."""
    for day, rows in nights():
        records = [
            {
                "req": {"at": row.moment.isoformat(), "body": {"user_query": row.question}},
                "hits": [
                    {"rank": rank, "doc": {"ref": name, "body": text, "lang": "en"}}
                    for rank, (name, text) in enumerate(zip(row.ids, row.passages, strict=True))
                ],
                "llm_answer": row.answer,
                "kb_version": row.build,
                "ctx": {"section": row.section, "latency_ms": 12.5},
            }
            for row in rows
        ]
        lines(folder / f"dt={day}" / "part-0.jsonl", records)
    return "."


def postgres_csv(folder: Path) -> str:
    """A table a night that COPY wrote, with documents as JSON and times as Postgres writes them."""
    for day, rows in nights():
        records = [
            {
                "id": row.id,
                "created_at": f"{row.moment:%Y-%m-%d %H:%M:%S}.5+00",
                "question": row.question,
                "retrieved_docs": json.dumps(_documents(row)),
                "llm_answer": row.answer,
                "kb_version": row.build,
                "section": row.section,
            }
            for row in rows
        ]
        table(folder / f"rag_log_{day:%Y%m%d}.csv", records)
    return "."


def nested_twice(folder: Path) -> str:
    """Lists within lists: the stages of a pipeline, each with its items."""
    for day, rows in nights():
        records = [
            {
                "event": {"time": row.moment.isoformat(), "section": row.section},
                "query": {"text": row.question},
                "trace": {
                    "stages": [
                        {"items": [{"payload": {"passage": text}, "key": name}]}
                        for name, text in zip(row.ids, row.passages, strict=True)
                    ]
                },
                "bot_reply": row.answer,
            }
            for row in rows
        ]
        lines(folder / f"{day}.jsonl", records)
    return "."


def postgres_arrays(folder: Path) -> str:
    """A table a night, with the passages and their ids as arrays."""
    for day, rows in nights():
        records = [
            {
                "request_id": row.id,
                "asked_at": f"{row.moment:%Y-%m-%d %H:%M:%S}+00",
                "user_question": row.question,
                "chunks": postgres_array(row.passages),
                "chunk_ids": "{" + ",".join(row.ids) + "}",
                "answer_text": row.answer,
                "kb_version": row.build,
                "section": row.section,
            }
            for row in rows
        ]
        table(folder / f"log-{day}.csv", records)
    return "."


def many_days(folder: Path) -> str:
    """One export of all nights."""
    records = [
        {
            "ts": row.moment.timestamp(),
            "question": row.question,
            "contexts": row.passages,
            "answer": row.answer,
            "ground_truth": row.answer,
            "section": row.section,
        }
        for _, rows in nights()
        for row in rows
    ]
    lines(folder / "export.jsonl", records)
    return "export.jsonl"


def tags_of_the_root(folder: Path) -> str:
    """Runs of LangSmith within their root, whose tags are texts such as `section:billing`."""
    for day, rows in nights():
        runs = [
            {
                **_run(f"root-{row.id}", f"root-{row.id}", None, row, "chain"),
                "tags": ["production", f"section:{row.section}"],
                "inputs": {"input": row.question},
                "outputs": {"output": row.answer},
                "child_runs": [
                    {
                        **_run(
                            f"run-{row.id}", f"root-{row.id}", f"root-{row.id}", row, "retriever"
                        ),
                        "inputs": {"query": row.question},
                        "outputs": {"documents": _documents(row)},
                        "tags": ["seq:step:1"],
                    }
                ],
            }
            for row in rows
        ]
        lines(folder / f"traces_{day}.jsonl", runs)
    return "."


def one_text(folder: Path) -> str:
    """A table a night, with the contexts as one text."""
    for day, rows in nights():
        records = [
            {
                "question": row.question,
                "context": "\n\n".join(row.passages),
                "answer": row.answer,
                "section": row.section,
            }
            for row in rows
        ]
        table(folder / f"{day}.csv", records)
    return "."


FIRST_LOGS: tuple[Write, ...] = (
    langsmith_export,
    home_grown,
    postgres_csv,
    nested_twice,
    postgres_arrays,
    many_days,
    tags_of_the_root,
    one_text,
)
