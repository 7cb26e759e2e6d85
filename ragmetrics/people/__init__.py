"""People: what they labelled, how well judges agree with them, and what follows for the numbers.

`labels` reads and uses labels, `calibration` holds judges against them. It decides on no alert
(`rules`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
