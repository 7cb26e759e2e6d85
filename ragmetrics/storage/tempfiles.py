"""Reports errors of temporary files like all other errors of storage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ragmetrics.errors import StoreError


@contextmanager
def temporary_file() -> Iterator[None]:
    """Turn an OSError of temporary files into a StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"writing temporary files (TMPDIR sets their folder): {error}", transient=True
        ) from error
