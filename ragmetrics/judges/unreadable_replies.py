"""Stops asking a judge whose replies to a prompt cannot be read any more.

A model that turns to another format of verdicts answers every request, and no reply is of use. By
the number of unreadable replies to a prompt since the last readable one:

    from 20     a request is not sent again
    from 100    no request is sent, but for a probe after 10, 20, 40 ... others

One readable reply ends it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

NO_REASKS = 20
REFUSED = 100
_FIRST_PROBE = 10


@dataclass
class UnreadableReplies:
    """The unreadable replies to one prompt since the last readable one."""

    in_a_row: int = 0
    _reason: str = ""
    _left_out: int = 0
    _next_probe: int = _FIRST_PROBE

    @property
    def may_ask_again(self) -> bool:
        """Whether an unreadable reply is worth another request."""
        return self.in_a_row < NO_REASKS

    def readable(self) -> None:
        """A reply could be read."""
        self.in_a_row, self._left_out, self._next_probe = 0, 0, _FIRST_PROBE

    def unreadable(self, reason: str) -> None:
        """A reply could not be read."""
        self.in_a_row += 1
        self._reason = reason

    def refusal(self) -> str:
        """Why a request is not sent; empty if it is sent."""
        if self.in_a_row < REFUSED:
            return ""
        self._left_out += 1
        if self._left_out >= self._next_probe:
            self._left_out, self._next_probe = 0, 2 * self._next_probe
            return ""
        return f"not asked: the last {self.in_a_row:,} replies were unreadable: {self._reason}"


class UnreadableByPrompt(defaultdict[str, UnreadableReplies]):
    """The same by name of the prompt, of one judge."""

    def __init__(self) -> None:
        super().__init__(UnreadableReplies)
