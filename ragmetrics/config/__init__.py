"""Settings: what `ragmetrics.yaml` may say, checked, with defaults.

It is for reading and validating settings. It is not for acting on them: judges are made in
`judges`, channels in `alerts`. Unknown keys are errors.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
