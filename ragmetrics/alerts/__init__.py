"""Alerts: rules turn numbers into findings, findings change alert states, channels are notified.

It decides what fires and when, who is notified, and what silences an alert. It computes no scores
(`scoring`) and draws no pages (`report`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
