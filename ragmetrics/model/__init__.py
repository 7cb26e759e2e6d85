"""The data model: rows, prompts, requests, scores, and every record that is stored as JSON.

It is for types that several packages share, and for what follows from one value alone. It is not
for reading or writing them (`storage`, `logs`), nor for making them (`scoring`, `alerts`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
