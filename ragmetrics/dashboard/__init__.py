"""The dashboard: a static site that works from a folder, a bucket or a web server.

It makes pages, figures, Markdown summaries and Prometheus metrics from stored records. It computes
no scores and checks no rules: it shows the results of other packages.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
