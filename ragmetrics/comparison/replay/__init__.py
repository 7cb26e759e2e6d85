"""Replays: the golden questions asked of an index build that has no log yet."""

from ragmetrics.comparison.replay.run import replay
from ragmetrics.model.replay import Replayed, ReplayShort

__all__ = ["ReplayShort", "Replayed", "replay"]
