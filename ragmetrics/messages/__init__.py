"""Messages: put findings into words, for Slack, text, Markdown, mail and terminals.

It decides nothing (`rules`) and sends nothing (`delivery`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
