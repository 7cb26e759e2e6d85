"""Settings: reads and validates `ragmetrics.yaml`, and holds the defaults.

It is for reading and validating settings. It is not for acting on them: `judges` makes the judges,
`alerts` makes the channels. An unknown key is an error.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
