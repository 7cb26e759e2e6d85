"""Reads messages that earlier versions stored: they were Block Kit, with text escaped for Slack."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any

_BOLD = re.compile(r"\*([^*\n]*)\*")
_MORE = re.compile(r"(?:<([^<>|\s]+)\|)?and (\d{1,9}) more>?")


def from_block_kit(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored message with neutral blocks in place of those of Slack."""
    blocks = [block for block in stored["blocks"] if isinstance(block, dict)]
    neutral = [new for block in blocks for new in _neutral(block)]
    return {**stored, "text": unescape(str(stored.get("text", ""))), "blocks": neutral}


def _neutral(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    match block.get("type"):
        case "header":
            yield {"kind": "header", "text": _text(block.get("text"))}
        case "section":
            yield _section(block)
        case "actions":
            targets = [
                (_text(element.get("text")), element.get("url"))
                for element in _parts(block, "elements")
            ]
            names = [(name.removeprefix("Open the "), str(url)) for name, url in targets]
            yield {"kind": "links", "targets": names}
        case "context":
            for element in _parts(block, "elements"):
                yield {"kind": "note", "text": _text(element)}


def _section(block: Mapping[str, Any]) -> dict[str, Any]:
    """A list, where its lines are marked as one; else a paragraph."""
    text = _text(block.get("text"))
    first, *lines = text.split("\n")
    title = _BOLD.match(first)
    named, beside = (title[1], first[title.end() :].strip()) if title else ("", "")
    if lines and lines[0].startswith("• "):
        more = _MORE.fullmatch(lines[-1])
        page, left = (more[1] or "", int(more[2])) if more else ("", 0)
        listed = [line.removeprefix("• ") for line in (lines[:-1] if more else lines)]
        return {"kind": "bullets", "title": named, "lines": listed, "more": left, "page": page}
    facts = [
        _text(field).replace("*", "").partition("\n")[::2] for field in _parts(block, "fields")
    ]
    lines = lines if title else [first, *lines]
    return {"kind": "section", "title": named, "beside": beside, "lines": lines, "facts": facts}


def _text(text: Any) -> str:
    return unescape(str(text.get("text", ""))) if isinstance(text, dict) else ""


def _parts(block: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    parts = block.get(name)
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
