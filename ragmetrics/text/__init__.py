"""Text: sentences, normalised questions, numbers in words, and text made safe.

It is for pure functions on strings. They do no I/O and know nothing of rows, judges or nights.
What makes logged text safe for a judge (`neutralise`) or for Slack (`escape`) is here too.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
