"""Complete listings: a folder that cannot be listed raises an error and is never skipped."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import fsspec
from fsspec.implementations.local import LocalFileSystem
from fsspec.utils import glob_translate

from ragmetrics.storage.retry import lacks_bucket

Found = Mapping[str, Mapping[str, Any]]
"""Maps the full name of each file to its details."""
Ask = Callable[[Callable[[], Any]], Any]
"""Calls a function, with retries, and returns its result."""


def all_below(fs: fsspec.AbstractFileSystem, full: str) -> Found:
    """All files below a folder at any depth; empty if the folder does not exist."""
    if isinstance(fs, LocalFileSystem) and not Path(full).is_file():
        return dict(_walked(full))
    try:
        return cast("Found", fs.find(full, detail=True))
    except FileNotFoundError as error:
        if lacks_bucket(error):
            raise
        return {}


def _walked(top: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The local files below a folder.

    `fs.find` is not used: it skips folders that cannot be read, and is four times slower.
    """
    waiting = [top.rstrip("/")]
    while waiting:
        folder = waiting.pop()
        # The folder was removed, or is a file: nothing to list. Writing to it raises an error.
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder or "/") as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(name)
                    continue
                with suppress(FileNotFoundError):
                    yield name, _details(entry)


def _details(entry: os.DirEntry[str]) -> Mapping[str, Any]:
    own = entry.stat(follow_symlinks=False)
    try:
        size = entry.stat().st_size
    except OSError:  # a broken link
        size = 0
    return {"size": size, "mtime": own.st_mtime, "type": "file"}


_MAGIC = re.compile(r"[*?\[]")


def matching(fs: fsspec.AbstractFileSystem, base: str, pattern: str, ask: Ask) -> Found:
    """The files and folders below a folder that match a pattern. `ask` retries each listing.

    The name of the folder is literal: a `[` in it is a `[`. `fs.glob` is not used: it silently
    skips folders whose listing fails.
    """
    base = base.rstrip("/")  # an empty name is the root of this machine
    folders, rest = [base], pattern
    found: dict[str, Mapping[str, Any]] = {}
    while rest:
        step, _, rest = rest.partition("/")
        if step == "**":
            fits = re.compile(glob_translate(pattern))
            everything = [ask(partial(all_below, fs, folder)) for folder in folders]
            return {
                name: info
                for one in everything
                for name, info in one.items()
                if fits.match(name.removeprefix(f"{base}/"))
            }
        if not _MAGIC.search(step):
            folders = [f"{folder}/{step}" for folder in folders]
            if not rest:
                known = [ask(partial(all_below, fs, folder)) for folder in folders]
                return {
                    name: info for one in known for name, info in one.items() if name in folders
                }
            continue
        fits = re.compile(glob_translate(step))
        listed = [one for folder in folders for one in ask(partial(_listed, fs, folder))]
        found = {one["name"]: one for one in listed if fits.match(one["name"].rpartition("/")[2])}
        folders = [name for name, one in found.items() if one["type"] == "directory"]
    return found


def _listed(fs: fsspec.AbstractFileSystem, folder: str) -> list[Mapping[str, Any]]:
    try:
        return cast("list[Mapping[str, Any]]", fs.ls(folder or "/", detail=True))
    except (FileNotFoundError, NotADirectoryError) as error:
        if lacks_bucket(error):
            raise
        return []
