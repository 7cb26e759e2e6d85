"""Files under one URI, in a local folder or a bucket.

Writes are atomic: a reader sees the whole file or nothing. Transient errors of a bucket are
retried. Every other error becomes a StoreError that names the operation and the file.
"""

from __future__ import annotations

import io
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, Protocol, TypeVar, cast
from urllib.parse import unquote, urlsplit

import fsspec
from fsspec.implementations.local import LocalFileSystem

from ragmetrics.errors import StoreError
from ragmetrics.storage.file_systems import (
    FileInfo,
    SteadyFile,
    all_below,
    file_infos,
    headers_of,
    matching,
    opened,
    replacing,
    temporary_file,
)
from ragmetrics.storage.retry import (
    RETRY_POLICY,
    RetryPolicy,
    is_condition_refused,
    is_missing,
    passing_over,
    translate_errors,
    was_replaced,
)

BLOCK = 4 << 20
BUFFER = 1 << 20
SECONDS = "patience_seconds"
"""Storage option for the time budget of retries. All other options are fsspec's."""
_MOST_READINGS = 8
_AT_ONCE = 8
_PIECE = 64
"""Number of files whose content is in memory at a time."""

T = TypeVar("T")
U = TypeVar("U")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Files:
    """Files below `root`; paths are relative to it and use forward slashes."""

    root: str
    options: Mapping[str, Any] | None = None

    @cached_property
    def _fs(self) -> tuple[fsspec.AbstractFileSystem, str]:
        return opened(self.root, {k: v for k, v in self._options.items() if k != SECONDS})

    @property
    def _options(self) -> Mapping[str, Any]:
        return self.options or {}

    @cached_property
    def _retry(self) -> RetryPolicy:
        seconds = self._options.get(SECONDS, RETRY_POLICY)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0:
            raise StoreError(f"storage_options: {SECONDS} should be a number of seconds")
        return RetryPolicy(self.place, float(seconds))

    @property
    def place(self) -> str:
        """The bucket and its options: equal for all files of one bucket."""
        parts = urlsplit(self.root)
        return f"{parts.scheme}://{parts.netloc} {sorted(map(str, self._options.items()))}"

    def _do(self, doing: str, path: str, act: Callable[[], T]) -> T:
        """Run `act` and return its result. Transient errors of a bucket are retried."""
        uri = self.uri(path)
        with translate_errors(doing, uri):
            return act() if self.local else self._retry.run(f"{doing} {uri}", act)

    @property
    def local(self) -> Path | None:
        """The folder of the files; None for a bucket."""
        fs, path = self._fs
        return Path(path) if isinstance(fs, LocalFileSystem) else None

    def lie_below(self, folder: Files) -> bool:
        """Whether these files lie in a folder; links and `..` are followed. A bucket has neither:
        an address with `..` in it, percent-encoded or not, lies in no folder.
        """
        if self.local and folder.local:
            return Path(os.path.realpath(self.local)).is_relative_to(os.path.realpath(folder.local))
        (fs, path), (other, base) = self._fs, folder._fs
        steps = unquote(self.root).split("/")
        leads_on = "::" in self.root or not {".", ".."}.isdisjoint(steps)
        return fs == other and not leads_on and f"{path}/".startswith(f"{base.rstrip('/')}/")

    def uri(self, path: str = "") -> str:
        """The address of a file, for messages and manifests."""
        return str(PurePosixPath(self.root) / path) if self.local else f"{self._base}{path}"

    @property
    def _base(self) -> str:
        return self.root.rstrip("/") + "/"

    def at(self, folder: str) -> Files:
        """The files below a subfolder."""
        return Files(self.uri(folder), self.options)

    def _full(self, path: str) -> str:
        base = self._fs[1]
        return f"{base.rstrip('/')}/{path}" if path else base

    @contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """Open for reading, with a buffer that makes reading lines fast from a bucket too."""
        fs, _ = self._fs
        full = self._full(path)
        raw = self._do("reading", path, lambda: fs.open(full, "rb", block_size=BLOCK))
        if not self.local:
            raw = SteadyFile(raw, partial(self._do, "reading", path))
        with io.BufferedReader(cast("io.RawIOBase", raw), BUFFER) as file:
            yield cast("BinaryIO", file)

    @contextmanager
    def open_as_is(self, path: str) -> Iterator[BinaryIO]:
        """Open the current version for reading, even if another process replaces the file.

        An open local file does not change. A file of a bucket is copied to this machine first.
        """
        if self.local:
            with self.open(path) as file:
                yield file
            return
        with ExitStack() as stack:
            with temporary_file():
                copy = stack.enter_context(tempfile.TemporaryFile())
            self._unchanged(path, partial(_copied, copy=copy))
            yield cast("BinaryIO", copy)

    def tail(self, path: str, size: int) -> bytes:
        """The last `size` bytes of a file, or all of it. Nothing else is fetched."""

        def last(file: BinaryIO) -> bytes:
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            return file.read()

        return self._unchanged(path, last)

    def _unchanged(self, path: str, read: Callable[[BinaryIO], T]) -> T:
        """Apply `read` to a file, again from the start if the file was replaced meanwhile."""
        for _ in range(_MOST_READINGS):
            try:
                with self.open(path) as file:
                    return read(file)
            except StoreError as error:
                if not was_replaced(error):
                    raise
        raise StoreError(f"reading {self.uri(path)}: the file keeps changing", transient=True)

    def read(self, path: str) -> bytes:
        """The whole content of a small file."""
        fs, full = self._fs[0], self._full(path)
        return self._do("reading", path, lambda: cast("bytes", fs.cat_file(full)))

    def find(self, path: str) -> bytes | None:
        """The whole content of a small file; None if it does not exist."""
        with passing_over(is_missing):
            return self.read(path)
        return None

    def exists(self, path: str) -> bool:
        """True when the file or folder exists."""
        fs, full = self._fs[0], self._full(path)
        return self._do("looking for", path, lambda: bool(fs.exists(full)))

    def info(self, path: str) -> FileInfo | None:
        """A file as it is now, with the name of its version; None if it does not exist."""
        fs, full = self._fs[0], self._full(path)
        refreshed = {"refresh": True} if self.root.startswith("s3") else {}
        with passing_over(is_missing):
            info = self._do("looking for", path, lambda: fs.info(full, **refreshed))
            if info["type"] != "directory":
                return file_infos({full: info}, self._fs[1])[0]
        return None

    def write(self, path: str, data: bytes) -> None:
        """Write a whole file: by a temporary file and a rename, or by one PUT."""
        fs, full = self._fs[0], self._full(path)

        def act() -> None:
            if self.local:
                with replacing(Path(full)) as temporary:
                    temporary.write_bytes(data)
            else:
                fs.pipe_file(full, data, **headers_of(self.root, path))

        self._do("writing", path, act)

    def create(self, path: str, data: bytes) -> bool:
        """Write a whole file to a bucket of S3 unless it exists; False if it has other content.

        Some servers ignore the condition and overwrite. A reply that was lost makes no difference.
        """
        fs, full = self._fs[0], self._full(path)

        def act() -> bool:
            try:
                fs.pipe_file(full, data, mode="create")
            except OSError as error:
                if is_condition_refused(error):
                    return False
                raise
            return True

        return self._do("writing", path, act) or self.find(path) == data

    def check_writable(self, folder: str) -> None:
        """Raise StoreError if a test file cannot be written to a folder."""
        path = f"{folder}/.probe"
        with translate_errors("writing to", self.uri(folder)):
            try:
                self.write(path, b"")
            except StoreError as error:
                cause = error.__cause__ or error
                raise cause from cause.__cause__  # that one contains the server's answer
        with suppress(StoreError):  # an empty file does no harm
            self.remove(path)

    def put(self, source: Path, path: str) -> None:
        """Copy a finished local file to the store."""
        fs, full = self._fs[0], self._full(path)

        def act() -> None:
            if self.local:
                with replacing(Path(full)) as temporary:
                    shutil.copyfile(source, temporary)
            else:
                fs.put_file(str(source), full, **headers_of(self.root, path))

        self._do("writing", path, act)

    def remove(self, path: str) -> None:
        """Remove a file. A missing file is no error."""
        fs, full = self._fs[0], self._full(path)

        def act() -> None:
            with suppress(FileNotFoundError):
                fs.rm_file(full)

        self._do("removing", path, act)

    def discard(self, path: str) -> None:
        """Remove a file, or empty it if deleting is denied. Raises StoreError when both fail."""
        try:
            self.remove(path)
        except StoreError as error:
            if self.exists(path):
                self.write(path, b"")
                log.warning("%s; the file is left empty", error)

    def find_all(self, paths: Sequence[str]) -> Iterator[bytes | None]:
        """The content of each file in order; None for a missing file. Several files of a bucket are
        read in parallel.
        """
        for start in range(0, len(paths), _PIECE):
            yield from self.side_by_side(self.find, paths[start : start + _PIECE])

    def side_by_side(self, act: Callable[[T], U], items: Sequence[T]) -> list[U]:
        """Apply `act` to each item, in order; in parallel if the files are in a bucket.

        The threads have the deadline of this context, and add to the damage that it collects.
        """
        if self.local or len(items) < 2:
            return [act(item) for item in items]
        context = copy_context()
        with ThreadPoolExecutor(_AT_ONCE, "ragmetrics-read") as pool:
            return list(pool.map(lambda item: context.copy().run(act, item), items))

    def below(self, folder: str = "") -> list[FileInfo]:
        """All files below a folder at any depth, by path; empty if the folder does not exist."""
        fs, base = self._fs
        full = self._full(folder)
        return file_infos(self._do("listing", folder, lambda: all_below(fs, full)), base)

    def glob(self, pattern: str) -> list[FileInfo]:
        """The files that match a glob pattern, by path. The root is literal."""
        fs, base = self._fs
        if self.local:
            matches = self._do(
                "listing", pattern, lambda: matching(fs, base, pattern, lambda act: act())
            )
        else:
            with translate_errors("listing", self.uri(pattern)):
                matches = matching(fs, base, pattern, partial(self._do, "listing", pattern))
        files = {name: info for name, info in matches.items() if info["type"] != "directory"}
        return file_infos(files, base)


def _copied(file: BinaryIO, copy: IO[bytes]) -> None:
    copy.seek(0)
    copy.truncate()
    with temporary_file():
        shutil.copyfileobj(file, copy, BLOCK)
    copy.seek(0)


class StoreSettings(Protocol):
    """Settings with the location of a store."""

    @property
    def store(self) -> str:
        """The URI of the store."""
        ...

    @property
    def storage_options(self) -> dict[str, Any]:
        """Options of fsspec's file system."""
        ...


def open_store(settings: StoreSettings) -> Files:
    """The store of a dataset."""
    return Files(settings.store, settings.storage_options)
