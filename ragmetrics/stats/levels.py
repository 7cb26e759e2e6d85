"""Levels of confidence and significance, separate because statistics are slow to import."""

CONFIDENCE = 0.95
"""Confidence level of intervals."""
ALPHA = 0.05
"""Significance level of tests."""
