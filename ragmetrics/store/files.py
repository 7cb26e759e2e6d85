"""The one door to fsspec: files under one URI, in a local folder or in a bucket.

Writes are atomic: a reader sees the whole file or none of it. Every failure comes out as a
StoreError that says what was being done and to which file.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast
from uuid import uuid4

import fsspec
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from ragmetrics.errors import StoreError

BLOCK = 4 << 20
BUFFER = 1 << 20

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
    ".svg": "image/svg+xml",
}


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths of this machine lead to one file, be it there or not yet."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


@dataclass(frozen=True)
class FileInfo:
    """One file of a listing; `version` changes when its content does."""

    path: str
    size: int
    version: str


@dataclass(frozen=True)
class Files:
    """Files below `root`; paths are relative to it and use forward slashes."""

    root: str
    options: Mapping[str, Any] | None = None

    @cached_property
    def _fs(self) -> tuple[fsspec.AbstractFileSystem, str]:
        options = dict(self.options or {})
        if self.root.startswith(("s3://", "s3a://")):
            # Cached listings never see what other workers write.
            options = {"use_listings_cache": False, **options}
        with _told("opening", self.root):
            fs, path = url_to_fs(self.root, **options)
        return fs, path.rstrip("/") or "/"

    @property
    def local(self) -> Path | None:
        """The folder, where the files are on this machine."""
        fs, path = self._fs
        return Path(path) if isinstance(fs, LocalFileSystem) else None

    def uri(self, path: str = "") -> str:
        """The address of a file, for people and manifests."""
        return str(PurePosixPath(self.root) / path) if self.local else f"{self._base}{path}"

    @property
    def _base(self) -> str:
        return self.root.rstrip("/") + "/"

    def at(self, folder: str) -> Files:
        """The files below a folder of these."""
        return Files(self.uri(folder), self.options)

    def _full(self, path: str) -> str:
        base = self._fs[1]
        return f"{base.rstrip('/')}/{path}" if path else base

    @contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """Open for reading, buffered so that reading line by line is fast from a bucket too."""
        fs, _ = self._fs
        full = self._full(path)
        with _told("reading", self.uri(path)):
            raw = fs.open(full, "rb", block_size=BLOCK)
        with io.BufferedReader(cast("io.RawIOBase", raw), BUFFER) as file:
            yield cast("BinaryIO", file)

    def read(self, path: str) -> bytes:
        """The whole content of a small file."""
        with _told("reading", self.uri(path)):
            return cast("bytes", self._fs[0].cat_file(self._full(path)))

    def find(self, path: str) -> bytes | None:
        """The whole content of a small file, or None where there is none."""
        try:
            return self.read(path)
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        with _told("looking for", self.uri(path)):
            return bool(self._fs[0].exists(self._full(path)))

    def write(self, path: str, data: bytes) -> None:
        """Write a file whole: a temporary name and a rename, or one put."""
        full = self._full(path)
        with _told("writing", self.uri(path)):
            if self.local:
                with _replacing(Path(full)) as temporary:
                    temporary.write_bytes(data)
            else:
                self._fs[0].pipe_file(full, data, **self._headers(path))

    def check_writable(self, folder: str) -> None:
        """Raise StoreError where nothing can be written to a folder, or removed: tried out."""
        path = f"{folder}/.probe-{uuid4().hex}"
        with _told("writing to", self.uri(folder)):
            try:
                self.write(path, b"")
                self.remove(path)
            except StoreError as error:
                raise error.__cause__ or error from None

    def put(self, source: Path, path: str) -> None:
        """Move a finished local file to its place."""
        full = self._full(path)
        with _told("writing", self.uri(path)):
            if self.local:
                with _replacing(Path(full)) as temporary:
                    shutil.copyfile(source, temporary)
            else:
                self._fs[0].put_file(str(source), full, **self._headers(path))

    def remove(self, path: str) -> None:
        """Remove a file; one that is gone already is fine."""
        with _told("removing", self.uri(path)), suppress(FileNotFoundError):
            self._fs[0].rm_file(self._full(path))

    def below(self, folder: str = "") -> list[FileInfo]:
        """All files below a folder, however deep, by path; none where there is no such folder."""
        fs, base = self._fs
        with _told("listing", self.uri(folder)):
            try:
                found = fs.find(self._full(folder), detail=True)
            except FileNotFoundError as error:
                if _lacks_bucket(error):
                    raise
                found = {}
        return _infos(found, base)

    def glob(self, pattern: str) -> list[FileInfo]:
        """The files that match a pattern, by path."""
        fs, base = self._fs
        with _told("listing", self.uri(pattern)):
            found = fs.glob(self._full(pattern), detail=True)
        return _infos({name: info for name, info in found.items() if info["type"] == "file"}, base)

    def _headers(self, path: str) -> dict[str, str]:
        kind = CONTENT_TYPES.get(PurePosixPath(path).suffix)
        return {"ContentType": kind} if kind and self.root.startswith("s3") else {}


def _infos(found: Mapping[str, Mapping[str, Any]], base: str) -> list[FileInfo]:
    infos = [
        FileInfo(
            path=name.removeprefix(base).lstrip("/"),
            size=int(info.get("size") or 0),
            version=str(info.get("ETag") or info.get("mtime") or ""),
        )
        for name, info in found.items()
        if not PurePosixPath(name).name.startswith(".")
    ]
    return sorted(infos, key=lambda info: info.path)


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A temporary file beside the target that takes its place when all went well."""
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


def _lacks_bucket(error: FileNotFoundError) -> bool:
    """Whether it is the bucket that is not there; s3fs keeps botocore's error as the cause."""
    response = getattr(error.__cause__, "response", None) or {}
    return bool(response.get("Error", {}).get("Code") == "NoSuchBucket")


@contextmanager
def _told(doing: str, uri: str) -> Iterator[None]:
    """Turn what fsspec, botocore and the system raise into a StoreError a person can act on."""
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError as error:
        what = "no such bucket" if _lacks_bucket(error) else "no such file"
        raise StoreError(f"{doing} {uri}: {what}") from error
    except PermissionError as error:
        raise StoreError(f"{doing} {uri}: access denied ({error})") from error
    except (ImportError, ValueError) as error:
        raise StoreError(f"{doing} {uri}: {error}") from error
    except OSError as error:
        raise StoreError(f"{doing} {uri}: {error}", transient=True) from error
    except Exception as error:
        if type(error).__module__.startswith(("botocore", "aiobotocore", "aiohttp")):
            raise StoreError(f"{doing} {uri}: {error}", transient=True) from error
        raise
