"""The prices of OpenAI's models that are known without settings: `prices.json`, with their date.

They are those of standard requests of up to 272,000 tokens. A price in the settings wins, and other
servers have none: what a proxy charges is not known.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ragmetrics.config.endpoints import url_of_environment

_SNAPSHOT = re.compile(r"-\d{4}-\d\d-\d\d$")
_FILE = Path(__file__).with_name("prices.json")


class Prices(NamedTuple):
    """US dollars of a million tokens; None: not known."""

    prompt: float | None = None
    cached: float | None = None
    """Of prompt tokens from the cache. None: that of other prompt tokens."""
    completion: float | None = None

    def or_else(self, other: Prices) -> Prices:
        """These prices, and others where they are not known."""
        pairs = zip(self, other, strict=True)
        return Prices(*(theirs if own is None else own for own, theirs in pairs))

    def usd(self, prompt: float, completion: float, cached: float = 0) -> float | None:
        """Cost of tokens, of which `cached` ones of the prompt. None: a price is not known."""
        if self.prompt is None or self.completion is None:
            return None
        of_cached = self.prompt if self.cached is None else self.cached
        paid = (prompt - cached) * self.prompt + cached * of_cached
        return (paid + completion * self.completion) / 1e6

    def usd_saved(self, cached: int) -> float | None:
        """How much less cached tokens cost. None: none was cached, or a price is not known."""
        if not cached or self.cached is None or self.prompt is None:
            return None
        return round(cached * (self.prompt - self.cached) / 1e6, 6)


def listed_prices(model: str, base_url: str | None, *, batch: bool = False) -> Prices:
    """The listed prices of a model at an address (None: OpenAI's); a batch costs its share."""
    address, table = base_url or url_of_environment(), _table()
    if address and urlsplit(address).hostname != table["host"]:
        return Prices()
    share = table["batch_share"] if batch else 1.0
    known = table["usd_per_million_tokens"].get(_SNAPSHOT.sub("", model), {})
    return Prices(**{kind: price * share for kind, price in known.items()})


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return table
