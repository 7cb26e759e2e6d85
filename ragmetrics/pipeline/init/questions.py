"""What a person may have to decide while the first settings file is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """One question, with the answer that is taken where nobody is asked."""

    text: str
    default: str
    options: Sequence[str] = ()
    """The answers that are possible; empty: any text."""


Ask = Callable[[Question], str]
