"""Opens fsspec's file systems, and adds what they lack: complete listings, whole replacements,
steady reading.

A folder that cannot be listed raises an error and is never skipped.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, cast

import fsspec
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from fsspec.utils import glob_translate

from ragmetrics.errors import StoreError
from ragmetrics.storage.retry import lacks_bucket, translate_errors

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
    ".svg": "image/svg+xml",
    ".prom": "text/plain; version=0.0.4; charset=utf-8",
}
Found = Mapping[str, Mapping[str, Any]]
"""Maps the full name of each file to its details."""
Ask = Callable[[Callable[[], Any]], Any]
"""Calls a function, with retries, and returns its result."""


@dataclass(frozen=True)
class FileInfo:
    """One file of a listing; `version` changes when its content does."""

    path: str
    size: int
    version: str
    modified: float | None = field(default=None, compare=False)
    """Time of the last write, in seconds by the clock of the store. None: unknown."""
    refused: str = ""
    """Why the file is not opened as a log; empty if it is."""
    version_id: str = field(default="", compare=False)
    """Name of this version in a versioned bucket; empty in a listing, and where there is none."""


def opened(root: str, options: Mapping[str, Any]) -> tuple[fsspec.AbstractFileSystem, str]:
    """The file system of an address by fsspec's options, and the path in it."""
    if root.startswith(("s3://", "s3a://")):
        # Cached listings miss files of other workers. Concurrent fetching of pieces needs an extra
        # request for the size, and most files here are small.
        options = {"use_listings_cache": False, "max_concurrency": 1, **options}
        options["config_kwargs"] = _steady() | (options.get("config_kwargs") or {})
    with translate_errors("opening", root):
        fs, path = url_to_fs(root, **options)
    return fs, path.rstrip("/") or "/"


def _steady() -> dict[str, Any]:
    """Settings of a client of S3 that gives up replies that drip. Imported late: it takes half a
    second.
    """
    from ragmetrics.storage.minimum_rate import SteadySession

    return {"http_session_cls": SteadySession}


def headers_of(root: str, path: str) -> dict[str, str]:
    """What a bucket is told of a file: by what a browser shows it."""
    kind = CONTENT_TYPES.get(PurePosixPath(path).suffix)
    return {"ContentType": kind} if kind and root.startswith("s3") else {}


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
    stat = entry.stat(follow_symlinks=False)
    try:
        size = entry.stat().st_size
    except OSError:  # a broken link
        size = 0
    return {"size": size, "mtime": stat.st_mtime, "type": "file"}


_MAGIC = re.compile(r"[*?\[]")


def matching(fs: fsspec.AbstractFileSystem, base: str, pattern: str, ask: Ask) -> Found:
    """The files and folders below a folder that match a pattern. `ask` retries each listing.

    The name of the folder is literal: a `[` in it is a `[`. `fs.glob` is not used: it silently
    skips folders whose listing fails.
    """
    base = base.rstrip("/")  # an empty name is the root of this machine
    folders, rest = [base], pattern
    matches: dict[str, Mapping[str, Any]] = {}
    while rest:
        step, _, rest = rest.partition("/")
        if step == "**":
            fits = re.compile(glob_translate(pattern))
            everything = [ask(partial(all_below, fs, folder)) for folder in folders]
            return {
                name: info
                for infos in everything
                for name, info in infos.items()
                if fits.match(name.removeprefix(f"{base}/"))
            }
        if not _MAGIC.search(step):
            folders = [f"{folder}/{step}" for folder in folders]
            if not rest:
                known = [ask(partial(all_below, fs, folder)) for folder in folders]
                return {
                    name: info for infos in known for name, info in infos.items() if name in folders
                }
            continue
        fits = re.compile(glob_translate(step))
        listed = [one for folder in folders for one in ask(partial(_listed, fs, folder))]
        matches = {one["name"]: one for one in listed if fits.match(one["name"].rpartition("/")[2])}
        folders = [name for name, one in matches.items() if one["type"] == "directory"]
    return matches


def _listed(fs: fsspec.AbstractFileSystem, folder: str) -> list[Mapping[str, Any]]:
    try:
        return cast("list[Mapping[str, Any]]", fs.ls(folder or "/", detail=True))
    except (FileNotFoundError, NotADirectoryError) as error:
        if lacks_bucket(error):
            raise
        return []


def file_infos(details: Found, base: str) -> list[FileInfo]:
    """The files of a listing without hidden ones, by path."""
    infos = [
        FileInfo(
            path=name.removeprefix(base).lstrip("/"),
            size=int(info.get("size") or 0),
            version=str(info.get("ETag") or info.get("mtime") or info.get("etag") or ""),
            modified=_moment(info),
            version_id=str(info.get("VersionId") or ""),
        )
        for name, info in details.items()
        if not PurePosixPath(name).name.startswith(".")
    ]
    return sorted(infos, key=lambda info: info.path)


def _moment(info: Mapping[str, Any]) -> float | None:
    """The time of the last write, from a listing of s3fs, gcsfs, adlfs or the local system."""
    for name in ("LastModified", "mtime", "last_modified"):
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, int | float):
            return float(value)
    return None


def same_file(path: Path, other: Path) -> bool:
    """True when two local paths are the same file, existing or not."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary file beside the target. It replaces the target when the block succeeds."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def temporary_file() -> Iterator[None]:
    """Turn an OSError of temporary files into a StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"writing temporary files (TMPDIR sets their folder): {error}", transient=True
        ) from error


class SteadyFile(io.RawIOBase):
    """A file of a bucket that retries transient errors of each read."""

    def __init__(self, raw: Any, retried: Ask) -> None:
        self._raw, self._retried = raw, retried

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """As in any file."""
        return int(self._raw.seek(offset, whence))

    def tell(self) -> int:
        """As in any file."""
        return int(self._raw.tell())

    def readinto(self, buffer: Any) -> int:
        """As in any file, but raises StoreError."""
        data = self._retried(lambda: self._raw.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._raw.close()
        super().close()
