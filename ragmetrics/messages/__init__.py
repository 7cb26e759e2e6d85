"""Messages: put findings into words, as neutral blocks, which a format shows.

It decides nothing (`rules`) and sends nothing (`delivery`). Text of logs is hostile: each format
escapes all of it, in one place.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
