"""Makes the bucket of the trial, with the logs and the golden set of `ragmetrics demo`."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import s3fs

from ragmetrics.pipeline import unpack_demo
from ragmetrics.storage import Files

BUCKET = "trial"
READABLE = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": "*",
            "Action": "s3:GetObject",
            "Resource": f"arn:aws:s3:::{BUCKET}/ragmetrics/dashboard/*",
        }
    ],
}
"""A browser reads the dashboard without a key, and nothing else."""

if __name__ == "__main__":
    storage = s3fs.S3FileSystem()
    storage.makedirs(BUCKET, exist_ok=True)
    storage.call_s3("put_bucket_policy", Bucket=BUCKET, Policy=json.dumps(READABLE))
    files = Files(f"s3://{BUCKET}")
    with tempfile.TemporaryDirectory() as name:
        folder = unpack_demo(Path(name)).parent
        for place in (folder / "golden.jsonl", *folder.glob("logs/*/*")):
            files.put(place, str(place.relative_to(folder)))
    sys.stdout.write("s3://trial has ten nights, 2026-11-10 to 2026-11-19\n")
