"""Whose verdicts a metric's scores are made of: what labels are held against."""

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
"""Metrics whose row scores are made of verdicts on labels, and the target that asks for these."""
