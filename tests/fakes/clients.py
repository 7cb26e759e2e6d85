"""What tests hold of the servers that run beside them."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from typing import Any

ACCESS_KEY = "testing"


@dataclass(frozen=True)
class JudgeServer:
    """The fake judge; `tests.fakes.judge.Behaviour` and `Stats` say what there is."""

    port: int

    @property
    def base_url(self) -> str:
        """What `base_url` in the settings should be."""
        return f"http://127.0.0.1:{self.port}/v1"

    def stats(self) -> dict[str, Any]:
        """What it was asked and what it answered since the last reset."""
        stats: dict[str, Any] = self._control("stats")
        return stats

    def faults(self, **behaviour: Any) -> None:
        """Change its behaviour from now on, setting by setting."""
        self._control("faults", behaviour)

    def batch_stats(self) -> dict[str, Any]:
        """What its Batch API was asked since the last reset."""
        stats: dict[str, Any] = self._control("batches/stats")
        return stats

    def batch_faults(self, **behaviour: Any) -> None:
        """Change how its Batch API behaves; `tests.fakes.judge_batches` says what there is."""
        self._control("batches/faults", behaviour)

    def reset(self) -> None:
        """Forget the counts and go back to the behaviour of the start."""
        self._control("reset", {})

    def _control(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return call(f"http://127.0.0.1:{self.port}/{path}", body)


@dataclass(frozen=True)
class Bucket:
    """A bucket of the fake S3; the environment holds the keys and the endpoint."""

    name: str
    endpoint: str
    client: Any
    """boto3's, which has no types."""

    @property
    def uri(self) -> str:
        """What `store` in the settings may be."""
        return f"s3://{self.name}"

    def keys(self, prefix: str = "") -> list[str]:
        """Keys of all objects under a prefix, in order."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.name, Prefix=prefix
        )
        return [item["Key"] for page in pages for item in page.get("Contents", ())]


def call(url: str, body: Any = None) -> Any:
    """GET, or POST where there is a body; return the JSON of the reply."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data, headers)
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)
