"""Whether a store is sound: each of its files is what its name says, whoever wrote it when."""

from __future__ import annotations

import io
import json

import pyarrow.parquet as pq

from ragmetrics.storage import Files


def assert_sound(files: Files) -> None:
    """Every file of the store can be read as what it is, and no half-written one is left."""
    read = set()
    for info in files.below():
        data, kind = files.find(info.path), info.path.rpartition(".")[2]
        if data is None:
            continue  # of a process that has just ended, and cleared away what it held
        if kind == "parquet":
            pq.read_table(io.BytesIO(data)).validate(full=True)
        elif kind == "json":
            json.loads(data)
        read.add(kind)
    assert {"parquet", "json"} <= read
    if files.local:
        assert [path for path in files.local.rglob(".*") if path.is_file()] == []
