"""deployments/aws/worker-policy.json on a server that evaluates its conditions: Ceph's gateway.

A night and a gate on a live Prefect server have these rights in test_deploying_doc.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import s3fs
from botocore.exceptions import ClientError

from ragmetrics.comparison import run_gate
from ragmetrics.config import Settings, make_settings
from ragmetrics.pipeline import examine, run_backfill, run_night
from ragmetrics.records import IndexBuild
from ragmetrics.storage import Files
from tests.fakes.ceph import WORKER, Ceph
from tests.fakes.logs import NIGHT, make_rows
from tests.fakes.processes import ROOT
from tests.fakes.replays import golden_rows
from tests.fakes.retriever import SearchServer

POLICY = json.loads((ROOT / "deployments/aws/worker-policy.json").read_text())
BUCKET = "my-bucket"
Policy = dict[str, Any]
Change = Callable[[Policy], None]


@pytest.fixture
def bucket(gateway: Ceph, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ceph]:
    """A bucket with a night, a golden set and what is nobody's business; nothing in the store. The
    environment is of a worker with the policy.
    """
    gateway.empty(BUCKET)
    put(gateway, f"retrieval/dt={NIGHT}/log.jsonl", make_rows(6))
    put(gateway, "golden.jsonl", golden_rows(60))
    put(gateway, "payroll/2026.jsonl", make_rows(1))
    gateway.allow(json.dumps(POLICY))
    for name, value in gateway.environment().items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    yield gateway
    s3fs.S3FileSystem.clear_instance_cache()


def put(gateway: Ceph, key: str, rows: list[dict[str, Any]]) -> None:
    """Write rows into the bucket, as its owner."""
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    gateway.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)


def settings(**change: Any) -> Settings:
    """The settings of docs/how-to/deploying.md, judged without network."""
    values = {
        "dataset": "help-centre",
        "logs": f"s3://{BUCKET}/retrieval/dt={{date}}/",
        "store": f"s3://{BUCKET}/ragmetrics",
        "golden": f"s3://{BUCKET}/golden.jsonl",
        "metrics": ["context_recall"],
        "gate": {"logs": f"s3://{BUCKET}/builds/{{build}}/"},
    }
    return make_settings({**values, **change})


@pytest.mark.usefixtures("bucket")
def test_the_first_night_runs_in_a_store_without_a_file() -> None:
    """A key that is missing is known to be missing: no request for it has an `s3:prefix`."""
    night = run_night(settings(), NIGHT)
    assert night.manifest.metrics[0].status == {"scored": 6}


def test_a_gate_replays_both_builds_and_compares_them(
    bucket: Ceph, search_server: SearchServer
) -> None:
    """It writes their logs below builds/, and reads them there."""
    replaying = settings(retriever=search_server.settings)
    for build, serving in (("b1", "b0"), ("b2", "b1")):
        found = run_gate(replaying, IndexBuild(dataset="help-centre", build=build, serving=serving))
    assert found.metrics[0].questions == 60
    listed = bucket.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="builds/")["Contents"]
    assert {item["Key"].split("/")[1] for item in listed} == {"b1", "b2"}


@pytest.mark.usefixtures("bucket")
def test_with_these_rights_one_of_many_makes_a_file_and_a_backfill_takes_its_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """At the same moment: the gateway honours the condition of a PUT."""
    files = Files(f"s3://{BUCKET}/ragmetrics")
    texts = [str(number).encode() for number in range(8)]
    with ThreadPoolExecutor(len(texts)) as pool:
        created = list(pool.map(lambda text: files.create("turns/a", text), texts))
    assert created.count(True) == 1
    assert files.read("turns/a") == texts[created.index(True)]
    for _ in range(2):
        run_backfill(settings(), NIGHT, NIGHT)
    turn = [(info.path, info.size) for info in files.below("turns/backfill")]
    assert turn == [("turns/backfill/000002", 0)]
    assert "has no turns" not in caplog.text


DENIED: dict[str, tuple[str, dict[str, str]]] = {
    "list another prefix": ("list_objects_v2", {"Prefix": "payroll/"}),
    "read another prefix": ("get_object", {"Key": "payroll/2026.jsonl"}),
    "look at another prefix": ("head_object", {"Key": "payroll/2026.jsonl"}),
    "write another prefix": ("put_object", {"Key": "payroll/2027.jsonl"}),
    "write a log": ("put_object", {"Key": f"retrieval/dt={NIGHT}/log.jsonl"}),
    "remove a log": ("delete_object", {"Key": f"retrieval/dt={NIGHT}/log.jsonl"}),
    "write the golden set": ("put_object", {"Key": "golden.jsonl"}),
    "write beside the store": ("put_object", {"Key": "ragmetrics-too/a.json"}),
}


@pytest.mark.parametrize("what", DENIED)
def test_a_worker_may_not(bucket: Ceph, what: str) -> None:
    """What the policy does not name stays closed."""
    action, values = DENIED[what]
    with pytest.raises(ClientError) as denied:
        getattr(bucket.client("s3", WORKER), action)(Bucket=BUCKET, **values)
    assert denied.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def require_a_prefix(policy: Policy) -> None:
    """The condition that every request has to fulfil, also one that has no prefix."""
    condition = policy["Statement"][0]["Condition"]
    condition["StringLike"] = condition.pop("StringLikeIfExists")


def forget_builds(policy: Policy) -> None:
    """A policy for nights alone."""
    policy["Statement"].pop()
    policy["Statement"][1]["Resource"].pop()
    policy["Statement"][0]["Condition"]["StringLikeIfExists"]["s3:prefix"].remove("builds/*")


def write_no_builds(policy: Policy) -> None:
    """A policy for gates without a retriever."""
    policy["Statement"].pop()


@pytest.mark.parametrize(
    ("change", "check", "said"),
    [
        (require_a_prefix, "store", "there is no such file, and the bucket has to say so (404)"),
        (forget_builds, "gate logs", f"s3://{BUCKET}/builds/none/: access denied"),
        (write_no_builds, "gate logs", f"writing to s3://{BUCKET}/builds"),
    ],
)
def test_doctor_sees_what_a_policy_lacks(
    bucket: Ceph, search_server: SearchServer, change: Change, check: str, said: str
) -> None:
    """Before the first night fails, or the first gate."""
    replaying = settings(retriever=search_server.settings)
    checks = {one.name: one for one in examine(replaying, NIGHT)}
    assert {checks[name].state for name in ("logs", "golden set", "gate logs")} == {"ok"}
    assert checks["store"].state != "failed"
    policy = json.loads(json.dumps(POLICY))
    change(policy)
    bucket.allow(json.dumps(policy))
    found = {one.name: one for one in examine(replaying, NIGHT)}[check]
    assert found.state == "failed"
    assert said in found.text
