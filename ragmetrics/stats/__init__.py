"""Statistics: intervals, comparisons of means, change points, power, agreement.

This package holds pure functions on arrays and mappings, each with its source in the docstring. It
does no I/O, and has no knowledge of alerts or judges.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
