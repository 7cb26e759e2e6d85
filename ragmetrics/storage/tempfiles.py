"""Temporary files: what fails there is told like every other failure of storage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ragmetrics.errors import StoreError


@contextmanager
def temporary_file() -> Iterator[None]:
    """While temporary files are made or written: an OSError becomes a StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"writing temporary files (TMPDIR says where they go): {error}", transient=True
        ) from error
