"""Judges and embedders: clients, limits, batches, and the cache of their replies.

This package sends each request once, within limits of rate and spend, and caches the reply. It does
not define the requests (`metrics`), and it does not choose the rows (`scoring`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
