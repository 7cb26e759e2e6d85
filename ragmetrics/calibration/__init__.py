"""Calibration: compares judges with labelled rows, and measures the drift of judges.

It computes agreement, reliability and drift of judges, from calibrations and from the labelled set
of each night. It does not score traffic (`scoring`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
