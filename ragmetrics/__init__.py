"""Nightly evaluation of RAG retrieval: is it worse than last night, where and why."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Comparison",
    "Estimate",
    "Result",
    "Settings",
    "__version__",
    "aevaluate",
    "compare",
    "estimate",
    "evaluate",
    "make_settings",
]

_PLACES = {"Comparison": "model.comparison", "compare": "pipeline.compare_sides"}

if TYPE_CHECKING:
    from ragmetrics.config import Settings, make_settings
    from ragmetrics.model import Comparison
    from ragmetrics.pipeline import Result, aevaluate, compare, estimate, evaluate
    from ragmetrics.scoring import Estimate


def __getattr__(name: str) -> Any:
    # pandas and pyarrow are loaded by whoever evaluates, not by whoever asks for the version.
    if name in __all__:
        from importlib import import_module

        module = import_module(f"ragmetrics.{_PLACES.get(name, 'pipeline.evaluation')}")
        return getattr(module, name)
    raise AttributeError(f"module 'ragmetrics' has no attribute {name!r}")
