"""Logs as people have them: layouts of other tools, and of services of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from tests.fakes.logs import make_rows

DAY = "2026-11-19"
ROWS = make_rows(40, good=0.7)
Row = Mapping[str, Any]


def records(make: Callable[[Row], Row]) -> list[Row]:
    """A record for each row, with the tags that the rows have."""
    return [{**make(row), "section": ("billing", "travel")[n % 2]} for n, row in enumerate(ROWS)]


def lines(path: Path, make: Callable[[Row], Row]) -> None:
    """Write the records as JSON lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records(make)), "utf-8")


def langchain_csv(folder: Path) -> str:
    """A table of ragas's old names, with lists as Python writes them."""
    frame = pd.DataFrame(
        records(
            lambda row: {
                "question": row["user_input"],
                "contexts": str(row["retrieved_contexts"]),
                "answer": row["response"],
                "ground_truth": row["reference"],
            }
        )
    )
    frame.to_csv(folder / f"export-{DAY}.csv", index=False)
    return f"export-{DAY}.csv"


def langchain_documents(folder: Path) -> str:
    """Results of a LangChain chain, with its documents."""
    lines(
        folder / f"{DAY}.jsonl",
        lambda row: {
            "query": row["user_input"],
            "result": row["response"],
            "source_documents": [
                {"page_content": text, "metadata": {"source": "a.pdf"}}
                for text in row["retrieved_contexts"]
            ],
        },
    )
    return f"{DAY}.jsonl"


def chat_messages(folder: Path) -> str:
    """Chat messages, and what was retrieved for the last one; a folder for each day."""
    (folder / f"dt={DAY}").mkdir()
    lines(
        folder / f"dt={DAY}" / "part-0.jsonl",
        lambda row: {
            "messages": [
                {"role": "system", "content": "You help."},
                {"role": "user", "content": row["user_input"]},
            ],
            "retrieved_chunks": [{"text": text} for text in row["retrieved_contexts"]],
        },
    )
    return "."


def joined_texts(folder: Path) -> str:
    """A table in which the contexts are one text."""
    frame = pd.DataFrame(
        records(
            lambda row: {
                "question": row["user_input"],
                "context": "\n---\n".join(row["retrieved_contexts"]),
            }
        )
    )
    frame.to_csv(folder / "20261119.csv", index=False)
    return "20261119.csv"


def nested_requests(folder: Path) -> str:
    """A service's own log, with question and documents far inside, in folders by day."""
    (folder / "2026/11/19").mkdir(parents=True)
    lines(
        folder / "2026/11/19/service.jsonl",
        lambda row: {
            "request": {"body": {"question": row["user_input"], "top_k": 2}},
            "retrieval": {
                "documents": [
                    {"text": text, "score": 0.5, "meta": {"page": 1}}
                    for text in row["retrieved_contexts"]
                ]
            },
            "generation": {"answer": row["response"]},
        },
    )
    return "2026"


def camel_case_parquet(folder: Path) -> str:
    """Parquet with other names."""
    frame = pd.DataFrame(
        records(
            lambda row: {
                "userQuery": row["user_input"],
                "retrievedChunks": [
                    {"content": text, "score": 0.5} for text in row["retrieved_contexts"]
                ],
                "latencyMs": 12.5,
            }
        )
    )
    frame.to_parquet(folder / f"{DAY}.parquet")
    return f"{DAY}.parquet"


def deepeval_cases(folder: Path) -> str:
    """Test cases of DeepEval, as one array."""
    found = records(
        lambda row: {
            "input": row["user_input"],
            "actual_output": row["response"],
            "expected_output": row["reference"],
            "retrieval_context": row["retrieved_contexts"],
        }
    )
    (folder / "cases.json").write_text(json.dumps(found), "utf-8")
    return "cases.json"


def german_keys(folder: Path) -> str:
    """Names that nobody can know; the values show what they are."""
    lines(
        folder / f"{DAY}.jsonl",
        lambda row: {
            "frage": row["user_input"],
            "fundstellen": row["retrieved_contexts"],
            "antwort": row["response"],
        },
    )
    return f"{DAY}.jsonl"


OWN = (
    langchain_csv,
    langchain_documents,
    chat_messages,
    joined_texts,
    nested_requests,
    camel_case_parquet,
    deepeval_cases,
    german_keys,
)
