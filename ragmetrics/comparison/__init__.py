"""Comparison: A against B, of nights, runs or index builds; the gate and the replay of builds.

It says what changed between two sides, and whether an index build may serve. It has no alert rules
(`alerts`), and does not draw a comparison (`report`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
