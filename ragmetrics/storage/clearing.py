"""Files that are not needed any more, in a store that may refuse to remove them.

A policy of a bucket may allow writing and deny deleting. Then such a file is left empty, and its
readers take an empty file for one that is gone.
"""

from __future__ import annotations

import logging

from ragmetrics.errors import StoreError
from ragmetrics.storage.files import Files

log = logging.getLogger(__name__)


def remove_file(files: Files, path: str) -> None:
    """Remove a file, or leave it empty where that is refused. Raises StoreError for neither."""
    try:
        files.remove(path)
    except StoreError as error:
        if files.exists(path):
            files.write(path, b"")
            log.warning("%s; the file is left empty", error)
