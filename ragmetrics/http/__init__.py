"""HTTP: one client for all that is asked over a network, with bounded bodies and without secrets.

Judges, retrievers, tracing tools and code hosts are asked through it. aiohttp is imported when the
first request is sent.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
