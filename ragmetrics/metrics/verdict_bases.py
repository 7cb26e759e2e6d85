"""Metrics whose verdicts can be compared with labels."""

from __future__ import annotations

from collections.abc import Mapping

BASES: Mapping[str, str] = {
    "context_relevance": "context_relevance",
    "context_precision": "context_relevance",
    "context_relevancy": "context_relevancy",
    "context_relevancy_chunks": "context_relevancy",
    "context_recall": "context_recall",
    "faithfulness": "faithfulness",
}
"""Metric name to the label target whose verdicts make up its row scores."""
