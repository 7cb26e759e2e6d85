"""Comparing two sides, A and B: logs, nights, runs or index builds, whatever they are of."""
