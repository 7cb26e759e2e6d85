"""The settings as they are kept with a night and shown to people: no secret is in them.

Keys are read from the environment and are no settings; what may hold one all the same (a bucket's
options, what a retriever is sent, the user and the query of an address) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ragmetrics.config.settings import Settings

HIDDEN = "(not shown)"
_WITH_SECRETS = {"storage_options", "headers", "body", "params"}
_USER = re.compile(r"(?<=://)[^/@\s]*@")
_SAID = ("dataset", "logs", "store", "metrics", "judge", "judges", "embeddings")
"""Shown as they are even where the settings say nothing of them."""


def public_settings(settings: Settings) -> dict[str, Any]:
    """What a night ran by: the chief settings, and the others where they are not the defaults."""
    everything = settings.model_dump(mode="json")
    changed = settings.model_dump(mode="json", exclude_defaults=True)
    one_judge = "judges" if not settings.judges else "judge"
    chosen = {
        name: changed.get(name) or _chief(everything[name])
        for name in everything
        if name in changed or (name in _SAID and name != one_judge)
    }
    if settings.embeddings.name is None and "embeddings" not in changed:
        chosen.pop("embeddings")
    return {name: _without_secrets(name, value) for name, value in chosen.items()}


def _chief(value: Any) -> Any:
    return {"name": value["name"]} if isinstance(value, Mapping) else value


def _without_secrets(name: str, value: Any) -> Any:
    if name in _WITH_SECRETS and value:
        return {key: HIDDEN for key in value} if isinstance(value, Mapping) else HIDDEN
    if isinstance(value, Mapping):
        return {key: _without_secrets(str(key), one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_secrets(name, one) for one in value]
    return _without_user(value) if isinstance(value, str) else value


def _without_user(text: str) -> str:
    """An address without its user and password, and without the query of a web address."""
    text = _USER.sub("", text)
    parts = urlsplit(text) if text.startswith(("http://", "https://")) else None
    return parts._replace(query="", fragment="").geturl() if parts else text


__all__ = ["HIDDEN", "public_settings"]
