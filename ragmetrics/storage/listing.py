"""Listings that are whole or raise: a folder that cannot be listed is never passed over."""

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
"""What there is, by full name."""
Ask = Callable[[Callable[[], Any]], Any]
"""Returns what it is given to call returns, sooner or later."""


def all_below(fs: fsspec.AbstractFileSystem, full: str) -> Found:
    """All files below a folder, however deep; none where there is no such folder."""
    if isinstance(fs, LocalFileSystem) and not Path(full).is_file():
        return dict(_walked(full))
    try:
        return cast("Found", fs.find(full, detail=True))
    except FileNotFoundError as error:
        if lacks_bucket(error):
            raise
        return {}


def _walked(top: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The files of this machine below a folder.

    Not by `fs.find`: it passes over folders that cannot be read, and takes four times as long.
    """
    waiting = [top.rstrip("/")]
    while waiting:
        folder = waiting.pop()
        # Removed meanwhile, or below a file: there is nothing. Whoever writes there is told so.
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder or "/") as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(name)
                    continue
                with suppress(FileNotFoundError):
                    yield name, _told(entry)


def _told(entry: os.DirEntry[str]) -> Mapping[str, Any]:
    own = entry.stat(follow_symlinks=False)
    try:
        size = entry.stat().st_size
    except OSError:  # a link that leads nowhere
        size = 0
    return {"size": size, "mtime": own.st_mtime, "type": "file"}


_MAGIC = re.compile(r"[*?\[]")


def matching(fs: fsspec.AbstractFileSystem, pattern: str, ask: Ask) -> Found:
    """What matches a pattern, folder by folder; `ask` waits out what may pass of each listing.

    Not by `fs.glob`: it passes over folders of which the listing fails, so that files are missing
    from its answer and nobody is told.
    """
    head, _, rest = pattern.partition("/")
    folders = [head]  # empty where it is the root of this machine
    found: dict[str, Mapping[str, Any]] = {}
    while rest:
        step, _, rest = rest.partition("/")
        if step == "**":
            fits = re.compile(glob_translate(pattern))
            everything = [ask(partial(all_below, fs, folder)) for folder in folders]
            return {
                name: info for one in everything for name, info in one.items() if fits.match(name)
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
