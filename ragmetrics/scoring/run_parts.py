"""Lists the parts of a run: one per metric family and shard."""

from __future__ import annotations

from ragmetrics.config import Settings
from ragmetrics.scoring.metric_choice import score_families
from ragmetrics.scoring.staging import Staged


