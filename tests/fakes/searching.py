"""A search as a Python function, for `retriever: entrypoint:`, with an index that tests set."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from tests.fakes.retrievals import text_of

index: list[str] = []
"""Names of the passages that the index has, in the order of their rank for every question."""
hidden: set[str] = set()
"""Names that the filters hide."""
texts: dict[str, str] = {}
"""Texts that differ from `text_of`."""
asked: Counter[str] = Counter()
released = threading.Event()
"""Ends the calls of `hanging`."""


def reset(*names: str) -> None:
    """An index with some passages, and nothing asked."""
    index[:] = names
    hidden.clear()
    texts.clear()
    asked.clear()


def search(
    user_input: str, _build: str, k: int = 2, filters: bool = True, tag: str = ""
) -> list[dict[str, Any]]:
    """The first `k` passages: that whose text is asked for, then all in their order."""
    asked[f"{user_input[:30]}|{k}|{filters}|{tag}"] += 1
    names = [one for one in index if not (filters and one in hidden)]
    names.sort(key=lambda one: not _text(one).startswith(user_input[:60]))
    return [{"id": name, "text": _text(name)} for name in names[:k]]


def known(name: str, _build: str) -> bool:
    """Whether the index has a passage."""
    asked["look-up"] += 1
    return name in index


def hanging(_name: str, _build: str) -> bool:
    """A look-up that gives no answer until it is released."""
    return released.wait(10)


def refusing(user_input: str, _build: str) -> list[str]:
    """A search that nobody may use."""
    raise PermissionError("no access")


def _text(name: str) -> str:
    return texts.get(name) or text_of(name)


SETTINGS: dict[str, Any] = {
    "entrypoint": "tests.fakes.searching:search",
    "parameters": {"k": 2, "filters": True, "tag": "{tags.section}"},
    "probe": {"unfiltered": {"filters": False}},
}
"""`retriever:` that asks it."""
