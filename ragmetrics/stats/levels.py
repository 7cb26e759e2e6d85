"""Levels of confidence and significance: apart from the statistics, which take long to import."""

CONFIDENCE = 0.95
"""Of intervals."""
ALPHA = 0.05
"""Of tests."""
