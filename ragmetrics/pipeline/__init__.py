"""The verbs of the product: run a night, backfill, evaluate, compare, check, preview.

It is for steps that combine other packages, as plain functions. Flows, tasks and the command line
call them. It is not for anything that one package can do alone.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
