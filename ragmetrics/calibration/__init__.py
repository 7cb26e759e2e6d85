"""Calibration: judges against labelled rows, and how judges drift.

It is for agreement, reliability and drift of judges, by calibration or by the labelled set of each
night. It is not for scoring traffic (`scoring`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
