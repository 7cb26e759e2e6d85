"""Plain text, for services that show no styles."""

from __future__ import annotations

from ragmetrics.messages.text_format import TextFormat

text = TextFormat()
