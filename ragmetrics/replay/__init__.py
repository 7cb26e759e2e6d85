"""Replays: the golden questions asked of an index build that has no log yet."""

from ragmetrics.replay.records import Replayed, ReplayShort
from ragmetrics.replay.run import replay

__all__ = ["ReplayShort", "Replayed", "replay"]
