"""Storage: files in a folder or a bucket, and the records that a store contains.

It is for reading and writing parts, manifests, the history of nights, and gates. It is not for logs
(`logs`) or cached replies of judges (`judges`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
