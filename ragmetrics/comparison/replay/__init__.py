"""Replays: ask an index build without a log the golden questions, and write its log."""
