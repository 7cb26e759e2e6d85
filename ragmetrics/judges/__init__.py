"""Judges and embedders: clients, limits, batches, and the cache of their replies.

It is for getting an answer to a request, at most once, within limits of rate and spend. It is not
for what to ask (`metrics`), nor for which rows (`scoring`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
