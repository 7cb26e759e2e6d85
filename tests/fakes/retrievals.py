"""Nights of a store that have only rows and verdicts, for what reads what was retrieved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from ragmetrics.config import make_settings
from ragmetrics.passages import Run
from ragmetrics.passages.diagnosis.report import find_lost_passages
from ragmetrics.records import LogRow, LostPassages, Score, StageCounts
from ragmetrics.storage import (
    ROW_SCHEMA,
    SCORE_SCHEMA,
    Files,
    PartWriter,
    RunRef,
    row_record,
    score_record,
)

FIRST = date(2026, 11, 2)


@dataclass
class RetrievalNights:
    """Nights that are written one after another."""

    folder: Path
    runs: list[Run] = field(default_factory=list)

    def add(
        self,
        rows: Sequence[Mapping[str, Any]],
        grades: Mapping[str, Sequence[int]] | None = None,
        build: str | None = None,
    ) -> Run:
        """Write a night; `grades` are those of context_relevance by question."""
        day = FIRST + timedelta(days=len(self.runs))
        ref, files = RunRef(date=day, run="made", shards=1), Files(str(self.folder))
        self.folder.mkdir(parents=True, exist_ok=True)
        written = PartWriter(self.folder, ROW_SCHEMA)
        scores = PartWriter(self.folder, SCORE_SCHEMA)
        for number, fields in enumerate(rows):
            row = LogRow(**{"id": str(number), **fields})
            written.add(row_record(row))
            found = (grades or {}).get(row.user_input)
            details = {"grades": list(found)} if found else {}
            scores.add(score_record(row, Score(1.0, details=details)))
        written.finish(files, ref.rows(0))
        scores.finish(files, ref.scores("context_relevance", 0))
        self.runs.append(Run(files, ref, judged=grades is not None, build=build))
        return self.runs[-1]

    def lost(
        self,
        before: Sequence[StageCounts] = (),
        *,
        losing: int = 0,
        build: str | None = "b2",
        ask: bool = False,
        **settings: Any,
    ) -> LostPassages | None:
        """What the newest night lost; with `ask` the corpus and the retriever are asked.

        The last `losing` nights before it lost passages too.
        """
        chosen = make_settings({"store": str(self.folder), **settings})
        *usual, now = self.runs
        usual, during = usual[: len(usual) - losing], usual[len(usual) - losing :]
        return find_lost_passages(
            chosen, now, usual, before, during=during, build=build, ask=lambda _: ask
        )


def text_of(name: str) -> str:
    """Three sentences that no other passage has."""
    return " ".join(
        f"The {part} rule of document {name} is that case {name}{part} counts for {name} alone."
        for part in ("first", "second", "third")
    )


def asked(
    question: str, *names: str, golden: Sequence[str] | None = None, **fields: Any
) -> dict[str, Any]:
    """A row that retrieved passages by their names."""
    return {
        "user_input": question,
        "retrieved_contexts": tuple(text_of(name) for name in names),
        "retrieved_context_ids": names,
        "reference_context_ids": None if golden is None else tuple(golden),
        **fields,
    }
