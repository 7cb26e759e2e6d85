"""Delivery: what people and tools were told: alert states, the outbox, channels, write-back.

It decides nothing (`rules`) and words nothing (`messages`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
