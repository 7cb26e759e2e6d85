"""Metrics: the registry, the bundled metrics, and the user's wording of their prompts.

A metric is a generator that yields requests and returns a score. It sends no request itself
and does no I/O: `scoring` drives it. To add a metric, add a file with its name to `bundled/`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
