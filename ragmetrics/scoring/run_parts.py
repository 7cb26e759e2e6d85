"""Lists the parts of a run: one per metric family and shard."""

from __future__ import annotations
