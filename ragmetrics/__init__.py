"""Nightly evaluation of RAG retrieval: is it worse than last night, where and why."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Estimate",
    "Result",
    "Settings",
    "__version__",
    "aevaluate",
    "estimate",
    "evaluate",
    "make_settings",
]

if TYPE_CHECKING:
    from ragmetrics.estimates import Estimate
    from ragmetrics.evaluation import Result, aevaluate, estimate, evaluate
    from ragmetrics.settings import Settings, make_settings


def __getattr__(name: str) -> Any:
    # pandas and pyarrow are loaded by whoever evaluates, not by whoever asks for the version.
    if name in __all__:
        from importlib import import_module

        return getattr(import_module("ragmetrics.evaluation"), name)
    raise AttributeError(f"module 'ragmetrics' has no attribute {name!r}")
