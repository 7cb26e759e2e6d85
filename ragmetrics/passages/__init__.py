"""Passages: which are lost, where, and which a question needs.

`diagnosis` finds lost passages, `golden` keeps the golden questions, `topics` groups questions. It
decides on no alert (`rules`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
