"""Lists the parts of a run: one per metric family and shard."""

from __future__ import annotations

from ragmetrics.config import Settings
from ragmetrics.scoring.part import score_families
from ragmetrics.scoring.staging import Staged


def list_parts(settings: Settings, staged: Staged) -> list[tuple[list[str], int]]:
    """All parts of a run: each is a family of metrics and a shard."""
    return [
        (family, shard) for family in score_families(settings) for shard in range(staged.ref.shards)
    ]
