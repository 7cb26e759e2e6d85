"""Logs: reads retrieval logs and golden sets, in every format and preset.

It is for turning files, or tables in memory, into rows, and for rejecting bad rows with a reason.
It is not for storing rows (`storage`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
