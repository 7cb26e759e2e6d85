"""Nine ways in which a file of a store is damaged, and one file of each kind of a store."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.fakes.store_reading import PACKED

WAYS: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "garbage": lambda path: path.write_bytes(bytes(range(256))),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe{\x00\xd8" * 20),
    "another type": lambda path: path.write_bytes(b"[1, 2, 3]\n"),
    "without fields": lambda path: path.write_bytes(b"{}\n"),
    "another version": lambda path: path.write_bytes(b'{"version": 99, "states": 3, "ref": {}}\n'),
    "huge": lambda path: path.write_bytes(b"[" * 3_000_000),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}
_PARTS = (
    (re.compile(r"T\d{6}\.\d+Z"), "TIME"),
    (re.compile(r"\d{4}-\d\d(-\d\d)?"), "DATE"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{6,40}\b"), "ID"),
    (re.compile(r"shard-\d+"), "SHARD"),
)


def kinds(packed: Path = PACKED, store: str = "plain/store/") -> dict[str, str]:
    """The newest file of each kind of a packed store: paths below the store, by their pattern."""
    found: dict[str, str] = {}
    with zipfile.ZipFile(packed) as archive:
        names = sorted(one for one in archive.namelist() if one.startswith(store))
    for name in names:
        kind = name = name.removeprefix(store)
        for pattern, word in _PARTS:
            kind = pattern.sub(word, kind)
        found[kind] = name
    return found


def damage(path: Path, way: str) -> None:
    """Damage a file; a file that it is linked to stays whole."""
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    WAYS[way](path)
