"""Makes the bucket of the trial, with the logs and the golden set of `ragmetrics demo`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import s3fs

from ragmetrics.pipeline import unpack_demo
from ragmetrics.storage import Files

BUCKET = "trial"

if __name__ == "__main__":
    s3fs.S3FileSystem().makedirs(BUCKET, exist_ok=True)
    files = Files(f"s3://{BUCKET}")
    with tempfile.TemporaryDirectory() as name:
        folder = unpack_demo(Path(name)).parent
        for place in (folder / "golden.jsonl", *folder.glob("logs/*/*")):
            files.put(place, str(place.relative_to(folder)))
    sys.stdout.write("s3://trial has ten nights, 2026-11-10 to 2026-11-19\n")
