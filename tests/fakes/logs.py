"""Small logs made to measure."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

NIGHT = date(2026, 11, 19)


def make_rows(
    count: int = 10, *, good: float = 1.0, night: date = NIGHT, **fields: Any
) -> list[dict[str, Any]]:
    """Rows with distinct questions; a share `good` of them, spread evenly, has the answer.

    Each row has two contexts, of which at most the first is of use, a response, a reference
    and the tag `channel`. `fields` are set on every row; `None` removes one.
    """
    rows = []
    for number in range(count):
        answered = int((number + 1) * good) > int(number * good)
        row = _row(number, answered, night) | fields
        rows.append({name: value for name, value in row.items() if value is not None})
    return rows


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any] | str]) -> Path:
    """Write rows as JSON lines, gzipped if the name says so; a `str` is written as it is."""
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    data = "".join(f"{line}\n" for line in lines).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def _row(number: int, answered: bool, night: date) -> dict[str, Any]:
    answer = f"The height of tower {number} is {100 + number} metres."
    moment = datetime.combine(night, time(tzinfo=UTC)) + timedelta(seconds=number)
    return {
        "id": f"row-{number:04d}",
        "timestamp": moment.isoformat(),
        "user_input": f"What is the height of tower {number}?",
        "retrieved_contexts": [
            answer if answered else "Museums are closed on Mondays.",
            "Ferries leave the harbour every hour. They carry bicycles.",
        ],
        "response": answer,
        "reference": answer,
        "tags": {"channel": ("web", "app")[number % 2]},
    }
