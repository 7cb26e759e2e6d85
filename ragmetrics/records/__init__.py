"""The data model: rows, prompts, requests, scores, and every record that is stored as JSON.

It contains types that several packages share, and functions of one value alone. It does not read
or write them (`storage`, `logs`), and does not create them (`scoring`, `alerts`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
