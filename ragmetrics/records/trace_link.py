"""The setting `trace_url`: links from a row to its trace in a tracing tool."""

from __future__ import annotations

import re
from urllib.parse import quote

from ragmetrics.records.row import LogRow

_ADDRESS = re.compile(r"https?://[^\s/{}<>|\"'\\@?#]+/[^\s<>|\"'\\]*")
_PLACEHOLDER = re.compile(r"\{(id|trace_id|span_id|tags\.[^{}]+)\}")
_LONGEST_ADDRESS = 2_000


def check_trace_url(template: str) -> str:
    """The template of an address. Raises ValueError unless it is one of the web that names the
    trace of a row, on a server that no row can choose.
    """
    if not _is_address(template):
        raise ValueError("give an address such as https://trace.example/traces/{trace_id}")
    rest = _PLACEHOLDER.sub("", template)
    if rest == template or re.search(r"[{}]", rest):
        raise ValueError("its placeholders are {id}, {trace_id}, {span_id} and {tags.NAME}")
    return template


def trace_address(template: object, row: LogRow) -> str:
    """The address of a row's trace, with the values of the row encoded.

    Empty without a template, or if the row lacks a value that the template names.
    """
    if not isinstance(template, str) or not _is_address(template):
        return ""
    names = _PLACEHOLDER.findall(template)
    values = {name: _value(row, name) for name in names}
    if not all(values.values()):
        return ""
    address = _PLACEHOLDER.sub(lambda match: values[match[1]], template)
    return address if len(address) <= _LONGEST_ADDRESS else ""


def _is_address(template: str) -> bool:
    return bool(_ADDRESS.fullmatch(_PLACEHOLDER.sub("{}", template)))


def _value(row: LogRow, name: str) -> str:
    """A value of the row as part of an address; empty if there is none, or it would leave its
    folder.
    """
    tag = name.removeprefix("tags.")
    value = row.tags.get(tag) if tag != name else getattr(row, name)
    if not value or value in (".", ".."):
        return ""
    return quote(value.encode("utf-8", "surrogatepass"), safe="")
