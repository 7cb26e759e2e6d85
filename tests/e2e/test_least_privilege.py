"""The policies of deployments/aws allow what a worker and a reader of the dashboard need."""

from __future__ import annotations

import json
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import boto3
import pytest
import s3fs
import yaml

from tests.fakes import s3 as fake_s3
from tests.fakes.clients import Bucket, JudgeServer
from tests.fakes.logs import NIGHT, make_rows
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


def record_listings(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The prefixes that are listed from now on. The fake S3 does not check them, as AWS does."""
    prefixes: set[str] = set()
    call = s3fs.S3FileSystem._call_s3

    async def record(self: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        if method.startswith("list_objects"):
            given = {key: value for one in (*args, kwargs) for key, value in one.items()}
            prefixes.add(given.get("Prefix", ""))
        return await call(self, method, *args, **kwargs)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", record)
    return prefixes


def put_logs(bucket: Bucket) -> None:
    """A night of logs, and a file that is nobody's business."""
    lines = "\n".join(json.dumps(row) for row in make_rows(6))
    files().pipe_file(f"{bucket.uri}/retrieval/dt={NIGHT}/log.jsonl", lines.encode())
    files().pipe_file(f"{bucket.uri}/payroll.csv", b"secret")


@pytest.mark.usefixtures("prefect_server")
def test_a_night_needs_no_more_than_the_policy_of_the_worker(
    s3: Bucket, judge_server: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads logs and writes the store; it may write no log and read nothing else."""
    from flows.nightly import nightly

    put_logs(s3)
    settings = {
        "logs": f"{s3.uri}/retrieval/dt={{date}}/",
        "store": f"{s3.uri}/ragmetrics",
        "metrics": ["context_recall"],
        "judge": {"name": "openai", "model": "fake", "base_url": judge_server.base_url},
    }
    path = tmp_path / "ragmetrics.yaml"
    path.write_text(yaml.safe_dump(settings))
    log_in(s3, monkeypatch, "worker-policy.json")
    listed = record_listings(monkeypatch)
    assert nightly(str(path), NIGHT).manifest.metrics[0].status == {"scored": 6}
    policy = json.loads((POLICIES / "worker-policy.json").read_text())
    allowed = policy["Statement"][0]["Condition"]["StringLike"]["s3:prefix"]
    assert len(listed) > 1
    assert [one for one in listed if not any(fnmatch(one, each) for each in allowed)] == []
    assert files().exists(f"{s3.uri}/ragmetrics/dashboard/index.html")
    with pytest.raises(PermissionError):
        files().pipe_file(f"{s3.uri}/retrieval/dt={NIGHT}/log.jsonl", b"")
    with pytest.raises(PermissionError):
        files().cat_file(f"{s3.uri}/payroll.csv")


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
