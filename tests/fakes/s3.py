"""An S3 to test against: moto's server on localhost, in a process of its own.

python -m tests.fakes.s3 --port 0
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import threading
import urllib.request

import boto3  # type: ignore[import-untyped]
import s3fs
from moto.server import ThreadedMotoServer

from tests.fakes.clients import ACCESS_KEY, Bucket
from tests.fakes.processes import UNTIL_EOF, announce

REGION = "us-east-1"
BUCKET = "ragmetrics-test"


def empty(endpoint: str) -> None:
    """Forget all buckets and users, and what s3fs remembers of them; check no signature."""
    _post(f"{endpoint}/moto-api/reset")
    check_signatures(endpoint, after=float("inf"))
    s3fs.S3FileSystem.clear_instance_cache()


def check_signatures(endpoint: str, *, after: float = 0) -> None:
    """Refuse wrong keys and secrets with a real 403, after some requests."""
    _post(f"{endpoint}/moto-api/reset-auth", str(after).encode())


def environment(endpoint: str, key: str = ACCESS_KEY, secret: str = ACCESS_KEY) -> dict[str, str]:
    """The environment in which boto3 and s3fs find the server."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_DEFAULT_REGION": REGION,
    }


def make_bucket(endpoint: str) -> Bucket:
    """Make the bucket with the keys of the environment."""
    bucket = open_bucket(endpoint)
    bucket.client.create_bucket(Bucket=bucket.name)
    return bucket


def open_bucket(endpoint: str) -> Bucket:
    """The bucket, seen with the keys of the environment."""
    # boto3.client() would go on with the keys that its default session saw first.
    return Bucket(BUCKET, endpoint, boto3.Session().client("s3"))


def make_user() -> tuple[str, str]:
    """Make a user who may do all in S3; return the access key's id and secret."""
    iam = boto3.Session().client("iam")
    iam.create_user(UserName="ragmetrics")
    allow = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    iam.put_user_policy(
        UserName="ragmetrics",
        PolicyName="s3",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [allow]}),
    )
    key = iam.create_access_key(UserName="ragmetrics")["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]


def deny(bucket: Bucket, action: str, prefix: str) -> None:
    """Refuse an action, as `PutObject`, below a prefix of the bucket to the user of `make_user`."""
    where = f"arn:aws:s3:::{bucket.name}/{prefix}*"
    _put_denials(bucket, [{"Effect": "Deny", "Action": f"s3:{action}", "Resource": where}])


def deny_nothing(bucket: Bucket) -> None:
    """Let the user do everything again."""
    nothing = {"Effect": "Deny", "Action": "s3:PutBucketPolicy", "Resource": "*"}
    _put_denials(bucket, [nothing])


def _put_denials(bucket: Bucket, statements: list[dict[str, str]]) -> None:
    check_signatures(bucket.endpoint, after=float("inf"))  # policies are not the user's to write
    boto3.Session().client("iam").put_user_policy(
        UserName="ragmetrics",
        PolicyName="denied",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": statements}),
    )
    check_signatures(bucket.endpoint)


def _post(url: str, data: bytes = b"") -> None:
    request = urllib.request.Request(url, data, {"Content-Type": "text/plain"})
    with urllib.request.urlopen(request, timeout=120):
        pass


def main() -> None:
    """Run the server from the command line, until killed."""
    parser = argparse.ArgumentParser(description="An S3 for tests.")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument(UNTIL_EOF, action="store_true", help="stop when stdin closes")
    options = parser.parse_args()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    os.environ.update(environment("http://127.0.0.1"))
    server = ThreadedMotoServer("127.0.0.1", options.port, verbose=False)
    server.start()
    announce(server.get_host_and_port()[1], until_eof=options.until_eof)
    threading.Event().wait()


if __name__ == "__main__":
    main()
