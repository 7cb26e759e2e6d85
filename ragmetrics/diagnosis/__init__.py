"""Diagnosis: what happened to passages that questions needed and no longer get.

It compares what two sides retrieved and names the stage at which each passage was lost. It decides
no alert (`alerts`) and computes no score (`scoring`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
