"""The build step of deployments/prefect.yaml: what an installation says of itself, or the default.

Prefect's placeholders have no defaults, and its deployments create work queues without a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.exceptions import ObjectNotFound
from prefect.settings import get_current_settings
from prefect.variables import Variable

DEFAULTS = {
    "settings": "ragmetrics.yaml",
    "cron": "30 5 * * *",
    "timezone": "Etc/UTC",
    "calibrate_cron": "",
}
"""Variables of the server, without their prefix `ragmetrics_`."""
_WHEN_OFF = "0 4 * * 1"
"""A schedule needs a cron, even where it is switched off."""


def read_installation(queues: Sequence[str]) -> dict[str, Any]:
    """The values of the server's variables for the deployments; each of these work queues of the
    default pool exists, and runs one at a time unless it has a limit of its own.

    A relative path of settings begins where this is deployed from: a run begins anywhere.
    """
    values = {name: _variable(name) or default for name, default in DEFAULTS.items()}
    pool = get_current_settings().deployments.default_work_pool_name
    with get_client(sync_client=True) as client:
        for queue in queues:
            _limit(client, pool, queue)
    return {
        "settings": str(Path.cwd() / values["settings"]),
        "cron": values["cron"],
        "timezone": values["timezone"],
        "calibrate_cron": values["calibrate_cron"] or _WHEN_OFF,
        "calibrate_active": bool(values["calibrate_cron"]),
    }


def _variable(name: str) -> str:
    value = Variable.get(f"ragmetrics_{name}", default="")
    return value if isinstance(value, str) else str(value)


def _limit(client: SyncPrefectClient, pool: str | None, queue: str) -> None:
    """Runs of a queue begin in the order of their planned starts; those that wait for the
    concurrency limit of a deployment do not.
    """
    try:
        work_queue = client.read_work_queue_by_name(queue, work_pool_name=pool)
    except ObjectNotFound:
        client.create_work_queue(queue, concurrency_limit=1, work_pool_name=pool)
        return
    if work_queue.concurrency_limit is None:
        client.update_work_queue(work_queue.id, concurrency_limit=1)
