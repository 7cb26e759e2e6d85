"""The registry of formats: each is one module of the package `formats`, or of another package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from ragmetrics.messages.blocks import Block
from ragmetrics.plugins import Kind


@runtime_checkable
class Format(Protocol):
    """A way to show messages."""

    @property
    def name(self) -> str:
        """Its name, which is that of its module."""

    def escape(self, text: str) -> str:
        """A text of anybody on one line, in which nothing acts."""

    def render(self, blocks: Sequence[Block], room: int | None = None) -> Any:
        """The blocks in this format; what has no `room` is left out, which is said."""


FORMATS: Kind[Format] = Kind("ragmetrics.formats", "ragmetrics.messages.formats", Format, "format")
"""All formats by name."""
