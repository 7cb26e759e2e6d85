"""Nights whose judge may drift and whose retrieval may get worse, with a set judged each night."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from ragmetrics.config import Settings
from ragmetrics.delivery import notify_channels
from ragmetrics.logs import find_inputs
from ragmetrics.people import judge_drift_set
from ragmetrics.pipeline.publish import publish_run
from ragmetrics.records import Finding, Manifest
from ragmetrics.scoring import judge_info, list_parts, plan_run, score_part, stage_run
from ragmetrics.storage import open_store
from tests.builders import judge_at, night_settings
from tests.fakes.clients import JudgeServer
from tests.fakes.labelled import OTHER, make_labelled
from tests.fakes.logs import write_jsonl

FIRST = date(2026, 11, 10)
STRICT = 0.4
"""Lowers the mean grade of a row with one good context by 0.1."""


class Nights:
    """Nights of other questions each, by a judge over HTTP; half of a row's contexts answer.

    Each is run at two in the morning after it, whatever the time is.
    """

    def __init__(self, folder: Path, judge: JudgeServer, rules: Any, begun: int = 0) -> None:
        """`begun`: so many nights stand in the folder's store."""
        self.folder, self._judge, self._number = folder, judge, begun
        write_jsonl(folder / "fixed.jsonl", make_labelled(50))
        self.settings: Settings = night_settings(
            folder,
            logs="logs/{date}.jsonl",
            dataset="towers",
            metrics=["context_relevance", "context_precision"],
            judge=judge_at(judge),
            alerts={"drift_set": str(folder / "fixed.jsonl"), "rules": rules},
        )

    def run(self, *, strict: bool = False, lost: float = 0.0, judged: bool = True) -> Manifest:
        """The next night: by a drifted judge, or with a share of the rows answered by nothing.

        `judged`: whether the labelled set is judged, too.
        """
        self._judge.faults(strict=STRICT if strict else 0)
        day = FIRST + timedelta(days=self._number)
        now = datetime.combine(day, datetime.min.time(), UTC) + timedelta(days=1, hours=2)
        self._write(day, lost)
        inputs = find_inputs(self.settings, day)
        info, embedder = judge_info(self.settings)
        ref = plan_run(self.settings, day, inputs, f"{info.fingerprint}/{embedder}")
        staged = stage_run(self.settings, ref, inputs, now)
        if judged:
            assert judge_drift_set(self.settings, open_store(self.settings), now) is None
        for family, shard in list_parts(self.settings, staged):
            score_part(self.settings, ref, family, shard)
        self._number += 1
        manifest = publish_run(self.settings, staged, now + timedelta(minutes=5))
        notify_channels(self.settings, open_store(self.settings), manifest)
        return manifest

    def _write(self, day: date, lost: float) -> None:
        first = 1_000 * (self._number + 1)
        rows = make_labelled(first + 80)[first:]
        for place, row in enumerate(rows):
            if int((place + 1) * lost) > int(place * lost):
                row["retrieved_contexts"] = [OTHER, OTHER]
            del row["labels"]
        write_jsonl(self.folder / "logs" / f"{day}.jsonl", rows)


def of_kind(manifest: Manifest, kind: str) -> list[Finding]:
    """A night's findings of one kind."""
    return [finding for finding in manifest.findings if finding.kind == kind]
