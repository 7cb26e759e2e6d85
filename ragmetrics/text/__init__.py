"""Text: sentences, normalised questions, numbers in words, and text made safe.

This package holds functions on strings, without knowledge of rows, judges or nights. It also makes
logged text safe for a judge (`neutralise`) and for Slack (`escape`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
