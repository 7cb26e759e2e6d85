"""Storage: files in a folder or a bucket, and the records of nights among them.

It is for reading and writing what a store holds: parts, manifests, the history of nights, gates.
It is not for logs (`logs`), nor for cached replies of judges (`judges`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
