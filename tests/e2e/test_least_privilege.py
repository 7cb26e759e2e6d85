"""The policies of deployments/aws allow what a reader of the dashboard needs. What a worker needs
stands in tests/system/test_worker_policy.py.
"""

from __future__ import annotations

import json

import boto3
import pytest
import s3fs

from tests.fakes import s3 as fake_s3
from tests.fakes.clients import Bucket
from tests.fakes.processes import ROOT

POLICIES = ROOT / "deployments" / "aws"


def log_in(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    """Be a user of S3 who has one policy of deployments/aws and nothing else."""
    document = (POLICIES / policy).read_text().replace("my-bucket", bucket.name)
    iam = boto3.Session().client("iam")
    iam.create_user(UserName="limited")
    iam.put_user_policy(UserName="limited", PolicyName="its", PolicyDocument=document)
    key = iam.create_access_key(UserName="limited")["AccessKey"]
    pair = key["AccessKeyId"], key["SecretAccessKey"]
    for name, value in fake_s3.environment(bucket.endpoint, *pair).items():
        monkeypatch.setenv(name, value)
    fake_s3.check_signatures(bucket.endpoint)


def files() -> s3fs.S3FileSystem:
    """S3 as the user of the moment sees it."""
    return s3fs.S3FileSystem(skip_instance_cache=True)


def test_a_reader_of_the_dashboard_reads_no_row(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, quarantine and replies of the judge stay closed."""
    closed = ("rows/dt=x/run=y/shard-000.parquet", "quarantine/dt=x/run=y.jsonl", "runs/z.json")
    for name in ("dashboard/index.html", *closed):
        files().pipe_file(f"{s3.uri}/ragmetrics/{name}", b"text")
    log_in(s3, monkeypatch, "dashboard-reader-policy.json")
    assert files().cat_file(f"{s3.uri}/ragmetrics/dashboard/index.html") == b"text"
    for name in closed:
        with pytest.raises(PermissionError):
            files().cat_file(f"{s3.uri}/ragmetrics/{name}")


def test_cloudfront_reads_what_a_reader_reads() -> None:
    """The policy of the bucket opens the dashboard to one distribution, and nothing else."""
    reader, bucket = (
        json.loads((POLICIES / name).read_text())["Statement"][0]
        for name in ("dashboard-reader-policy.json", "dashboard-bucket-policy.json")
    )
    assert (bucket["Action"], bucket["Resource"]) == (reader["Action"], reader["Resource"])
    assert bucket["Principal"] == {"Service": "cloudfront.amazonaws.com"}
    assert "AWS:SourceArn" in bucket["Condition"]["StringEquals"]
