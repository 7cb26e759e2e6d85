"""Statistics: intervals, comparisons of means, change points, power, agreement.

It is for pure functions on numbers, in numpy and scipy, with their source in each docstring.
They do no I/O and know nothing of nights, alerts or judges: callers bring arrays and mappings.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
