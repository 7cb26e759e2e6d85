"""Nightly evaluation of RAG retrieval: did it get worse last night, where and why.

This is the public API: a metric of one's own, a notebook or a flow imports from here alone. What
is not named here may change at any time. Each name is imported on first use, so that
`import ragmetrics` stays fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
