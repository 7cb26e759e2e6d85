"""Replays: the golden questions asked of an index build that has no log yet."""
