"""Removes files from a store that may deny deleting.

The policy of a bucket may allow writing and deny deleting. Then the file is left empty. Readers
treat an empty file as missing.
"""

from __future__ import annotations

import logging

from ragmetrics.errors import StoreError
from ragmetrics.storage.files import Files

log = logging.getLogger(__name__)


def remove_file(files: Files, path: str) -> None:
    """Remove a file, or empty it if deleting is denied. Raises StoreError when both fail."""
    try:
        files.remove(path)
    except StoreError as error:
        if files.exists(path):
            files.write(path, b"")
            log.warning("%s; the file is left empty", error)
