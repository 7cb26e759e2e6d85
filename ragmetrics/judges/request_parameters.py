"""Parameters that an endpoint refuses by name: each is replaced or left out, once for a run.

OpenAI's current models refuse `max_tokens`, and any `temperature` but 1 while they reason. They
answer 400 and name the parameter. Other servers and proxies do the same in words of their own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

REPLACEMENTS: Mapping[str, str | None] = {
    "max_tokens": "max_completion_tokens",
    "temperature": None,
}
"""What is sent in place of a parameter; None: nothing, and the endpoint uses its default.

`max_completion_tokens` has no entry: without a limit, a reply could cost any amount.
"""
_CODES = ("unsupported_parameter", "unsupported_value", "unknown_parameter")
_REFUSAL = re.compile(
    r"unsupported|unrecogni[sz]ed|unknown|unexpected|extra |deprecated|n't support|"
    r"not (?:be )?(?:support|permit|allow|recogni|accept)",
    re.IGNORECASE,
)
_NAMES = re.compile(r"\b(?:max_completion_tokens|max_tokens|temperature|response_format)\b")
_MOST_READ = 200  # characters; what follows may quote the request
_LONGEST_NAME = 60


def refused_parameter(error: Mapping[str, Any]) -> str:
    """The parameter that the error of a rejected request refuses; empty if it refuses none.

    Only the first sentence is read: later ones may name a replacement, or quote a logged text.
    """
    message = error.get("message")
    first = re.split(r"\. |\n", str(message or "")[:_MOST_READ], maxsplit=1)[0]
    if error.get("code") not in _CODES and not _REFUSAL.search(first):
        return ""
    if isinstance(said := error.get("param"), str) and said:
        return said[:_LONGEST_NAME]
    named = _NAMES.search(first)
    return named.group() if named else ""


class RequestParameters:
    """The parameters that one endpoint takes for one model, as far as it has said."""

    def __init__(self) -> None:
        self._refused: set[str] = set()

    @property
    def version(self) -> int:
        """Changes whenever the endpoint refuses another parameter."""
        return len(self._refused)

    @property
    def changes(self) -> str:
        """What is sent otherwise than in the settings: `max_completion_tokens in place of
        max_tokens, no temperature`; empty if nothing is.
        """
        return ", ".join(
            f"{other} in place of {name}" if other else f"no {name}"
            for name, other in REPLACEMENTS.items()
            if name in self._refused
        )

    def fit(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a request without the refused parameters."""
        named = {(REPLACEMENTS[key] if key in self._refused else key): body[key] for key in body}
        return {key: value for key, value in named.items() if key is not None}

    def turn(self, refused: str, sent: Collection[str]) -> bool:
        """Learn from a rejection; whether the request can be sent again, in another way.

        A request can be sent again at most once for each entry of the table: what it was refused
        for, it does not send again. If the endpoint names something else, nothing helps.
        """
        if refused not in sent or refused not in REPLACEMENTS:
            return False
        self._refused.add(refused)
        return True
