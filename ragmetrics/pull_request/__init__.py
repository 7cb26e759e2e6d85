"""What a pull request shows of a comparison or gate: a summary, one comment and a check.

It reads the records of `ragmetrics compare` and `ragmetrics gate`, and computes nothing. GitHub and
GitLab are spoken to by their REST APIs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
