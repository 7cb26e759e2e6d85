"""The retriever of the user: asks it questions, and reads its answers as rows.

It scores nothing (`scoring`) and decides nothing (`diagnosis`, `comparison`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
