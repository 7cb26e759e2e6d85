"""The command line. Results go to stdout, progress to stderr; `--json` prints one object.

It is for parsing arguments and printing results. What a command does is in `pipeline` and below.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
