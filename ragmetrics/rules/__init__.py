"""Rules: turn the numbers of a night into findings: what fires, and what silences an alert.

It computes no scores (`scoring`), writes no messages (`messages`) and sends none (`delivery`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
