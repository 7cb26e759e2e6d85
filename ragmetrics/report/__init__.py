"""The dashboard: a static site that works from a folder, a bucket or a web server.

It is for pages, figures, Markdown summaries and Prometheus metrics made of stored records. It
computes no scores and judges no rule: it shows what others found.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
