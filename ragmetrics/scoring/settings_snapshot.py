"""The settings without secrets, as they are stored with a night and shown to people.

API keys are read from environment variables and are not part of the settings. Settings that may
contain a secret are left out: storage options, a retriever's request, the user and the query of an
address.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ragmetrics.config import Settings

HIDDEN = "(not shown)"
_WITH_SECRETS = {"storage_options", "headers", "body", "params"}
_USER = re.compile(r"(?<=://)[^/@\s]*@")
_ALWAYS_SHOWN = ("dataset", "logs", "store", "metrics", "judge", "judges", "embeddings")
"""Keys that are shown even when they have their default."""


def public_settings(settings: Settings) -> dict[str, Any]:
    """The settings of a night: the main ones, and all others that are not the defaults."""
    everything = settings.model_dump(mode="json")
    changed = settings.model_dump(mode="json", exclude_defaults=True)
    unused = "judge" if settings.judges else "judges"
    chosen = {
        name: changed.get(name) or _name_alone(everything[name])
        for name in everything
        if name in changed or (name in _ALWAYS_SHOWN and name != unused)
    }
    if settings.embeddings.name is None and "embeddings" not in changed:
        chosen.pop("embeddings")
    return {name: _without_secrets(name, value) for name, value in chosen.items()}


def _name_alone(value: Any) -> Any:
    named = isinstance(value, Mapping) and "name" in value
    return {"name": value["name"]} if named else value


def _without_secrets(name: str, value: Any) -> Any:
    if name in _WITH_SECRETS and value:
        return {key: HIDDEN for key in value} if isinstance(value, Mapping) else HIDDEN
    if isinstance(value, Mapping):
        return {key: _without_secrets(str(key), one) for key, one in value.items()}
    if name == "trace_url":  # a template without a secret: links show all of it
        return value
    if isinstance(value, list):
        return [_without_secrets(name, item) for item in value]
    return _without_user(value) if isinstance(value, str) else value


def _without_user(text: str) -> str:
    """The address without user and password; a web address also without its query."""
    text = _USER.sub("", text)
    parts = urlsplit(text) if text.startswith(("http://", "https://")) else None
    return parts._replace(query="", fragment="").geturl() if parts else text
