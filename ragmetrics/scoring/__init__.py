"""Scoring: takes a run from staged rows to scores and summaries.

It is for staging, sharding, running metrics over rows, budgets, samples and reuse of earlier runs.
It is not for comparing scores with other nights (`alerts`, `comparison`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
