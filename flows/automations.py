"""The automations of an installation: what the Prefect server does when runs fail.

python -m flows.automations apply      creates or updates those of deployments/automations.yaml
python -m flows.automations check      compares them with the server; exit code 1 if they differ
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import re
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.settings import PREFECT_API_URL
from rich.table import Table
from rich.text import Text

from flows.automation_file import (
    PREFIX,
    AutomationChange,
    Change,
    plan,
    read_automations,
    without_telling,
)
from ragmetrics.cli import err, out
from ragmetrics.errors import InputError, RagmetricsError

if TYPE_CHECKING:
    from prefect.events.schemas.automations import Automation, AutomationCore

FILE = Path(__file__).parents[1] / "deployments" / "automations.yaml"
TAG = "ragmetrics"
"""The tag of the deployments that the automations watch."""
BLOCK, BLOCK_TYPE = "ragmetrics-slack", "custom-webhook"
MESSAGE: dict[str, Any] = {
    "text": "{{subject}}",
    "blocks": [
        {"type": "section", "text": {"type": "mrkdwn", "text": "{{subject}}"}},
        # Plain text has no mentions, links or styles, whatever the text of a run is.
        {"type": "section", "text": {"type": "plain_text", "text": "{{body}}", "emoji": False}},
    ],
}
_ANSWER_SECONDS = 60.0
"""Time that Slack has to answer. Prefect posts a message again, up to three times, if it is not
answered in time (by default 10 seconds), although Slack may have it."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_PAGE = 200
_KNOWN_AFTER = 6.0
"""Seconds after which a server has read changed automations; it looks every five."""

DONE: Mapping[Change, str] = {
    "create": "created",
    "update": "updated",
    "delete": "deleted: not in the file",
    "keep": "unchanged",
}
FOUND: Mapping[Change, str] = {
    "create": "missing",
    "update": "differs",
    "delete": "not in the file",
    "keep": "as in the file",
}


def _ours(client: SyncPrefectClient) -> list[Automation]:
    automations: list[Automation] = []
    while page := client.read_automations(limit=_PAGE, offset=len(automations)):
        automations += page
    return [one for one in automations if one.name.startswith(PREFIX)]


def _carry_out(client: SyncPrefectClient, steps: Sequence[AutomationChange]) -> None:
    for step in steps:
        if step.change == "create" and step.wanted:
            client.create_automation(step.wanted)
        elif step.change == "update" and step.wanted and step.id:
            client.update_automation(step.id, step.wanted)
        elif step.change == "delete" and step.id:
            client.delete_automation(step.id)


def _block(
    client: SyncPrefectClient, args: argparse.Namespace, webhook: str | None
) -> tuple[Change, uuid.UUID | None]:
    """The change of the block that notifies Slack, and its ID if it exists.

    A webhook of None: any will do. Without Slack there is nothing to do.
    """
    if args.no_slack:
        return "keep", None
    try:
        document = client.read_block_document_by_name(BLOCK, BLOCK_TYPE, include_secrets=True)
    except ObjectNotFound:
        return "create", None
    wanted = block_values(webhook or "")
    if webhook is None:
        del wanted["secrets"]
    same = all(document.data.get(name) == value for name, value in wanted.items())
    return ("keep" if same else "update"), document.id


def block_values(webhook: str) -> dict[str, Any]:
    """The block that posts to a webhook of Slack; the address, itself a secret, is kept as one."""
    return {
        "name": BLOCK,
        "url": "{{webhook}}",
        "json_data": MESSAGE,
        "secrets": {"webhook": webhook},
        "timeout": _ANSWER_SECONDS,
    }


def _save_block(webhook: str) -> uuid.UUID:
    from prefect.blocks.notifications import CustomWebhookNotificationBlock

    saved = CustomWebhookNotificationBlock(**block_values(webhook)).save(BLOCK, overwrite=True)
    if not isinstance(saved, uuid.UUID):
        raise TypeError(f"{saved!r} is no id of a block")
    return saved


def _start_clocks(client: SyncPrefectClient) -> list[str]:
    """Expect a run of each nightly deployment from now on; return their names.

    A clock that goes already is not set back, so that this may be repeated.
    """
    from prefect.client.schemas.filters import (
        DeploymentFilter,
        DeploymentFilterTags,
        FlowFilter,
        FlowFilterName as Name,
    )

    nightlies = client.read_deployments(
        flow_filter=FlowFilter(name=Name(any_=["nightly"])),
        deployment_filter=DeploymentFilter(tags=DeploymentFilterTags(all_=[TAG])),
    )
    events = [_expected(f"prefect.deployment.{nightly.id}", nightly.name) for nightly in nightlies]
    if events:
        client.request("POST", "/events", json=events)
    return sorted(nightly.name for nightly in nightlies)


def _expected(deployment: str, name: str) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid4()),
        "occurred": dt.datetime.now(dt.UTC).isoformat(),
        "event": "ragmetrics.nightly.expected",
        "resource": {"prefect.resource.id": "ragmetrics.nightly"},
        "related": [
            {
                "prefect.resource.id": deployment,
                "prefect.resource.name": name,
                "prefect.resource.role": "deployment",
            },
            {"prefect.resource.id": f"prefect.tag.{TAG}", "prefect.resource.role": "tag"},
            {
                "prefect.resource.id": "ragmetrics.flow.nightly",
                "prefect.resource.name": "nightly",
                "prefect.resource.role": "flow",
            },
        ],
    }


def _apply(client: SyncPrefectClient, args: argparse.Namespace) -> int:
    webhook = None if args.no_slack else _webhook(args.slack_webhook_env)
    _wanted(args, None)  # before the server is touched
    change, block = _block(client, args, webhook)
    if webhook and change != "keep":
        block = _save_block(webhook)
    steps = plan(_wanted(args, block), _ours(client))
    _carry_out(client, steps)
    _print(args, change, steps, DONE)
    if any(step.change != "keep" for step in steps):
        time.sleep(_KNOWN_AFTER)
    watched = _start_clocks(client)
    if watched:
        out.print(f"A night is expected of: {', '.join(watched)}")
    else:
        out.print(f"No deployment of the flow nightly has the tag {TAG} yet: deploy, apply again.")
    return 0


def _check(client: SyncPrefectClient, args: argparse.Namespace) -> int:
    known = args.slack_webhook_env in os.environ and not args.no_slack
    change, block = _block(client, args, _webhook(args.slack_webhook_env) if known else None)
    steps = plan(_wanted(args, block), _ours(client))
    _print(args, change, steps, FOUND)
    return int(change != "keep" or any(step.change != "keep" for step in steps))


def _wanted(args: argparse.Namespace, block: uuid.UUID | None) -> list[AutomationCore]:
    values = {
        "SLACK_BLOCK_ID": str(block or uuid.UUID(int=0)),
        "MISSING_AFTER_SECONDS": args.missing_after,
        "ZOMBIE_AFTER_SECONDS": args.zombie_after,
        "CRASHED_AFTER_SECONDS": args.crashed_after,
    }
    read = read_automations(args.file, values)
    return without_telling(read) if args.no_slack else read


def _webhook(variable: str) -> str:
    url = os.environ.get(variable, "").strip()
    if not re.fullmatch(r"https?://\S+", url):
        raise InputError(
            f"{variable} is not set to the address of a Slack webhook, as in "
            "https://hooks.slack.com/services/...; set it, or use --no-slack to notify nobody"
        )
    return url


def _print(
    args: argparse.Namespace,
    block: Change,
    steps: Sequence[AutomationChange],
    words: Mapping[Change, str],
) -> None:
    table = Table("", "", show_header=False, box=None)
    if args.no_slack:
        out.print("Without Slack nobody is notified of failed, crashed or missing runs.")
    else:
        table.add_row(f"block {BLOCK}", words[block])
    for step in steps:
        table.add_row(Text(step.name), words[step.change])
    out.print(table)


def seconds(text: str) -> float:
    """A duration such as `26h`, `10m` or `45s`, in seconds; argparse's error for anything else."""
    match = _DURATION.fullmatch(text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: write 26h, 10m or 45s")
    return float(match[1]) * _SECONDS[match[2]]


def main() -> int:
    """Apply or check from the command line: 0 fine, 1 the server differs, 2 input error."""
    args = _arguments()
    try:
        server = PREFECT_API_URL.value()
        if not server:
            raise InputError("no Prefect server: set PREFECT_API_URL, as in http://host:4200/api")
        with get_client(sync_client=True) as client:
            return {"apply": _apply, "check": _check}[args.command](client, args)
    except RagmetricsError as error:
        message = str(error)
    except PrefectHTTPStatusError as error:
        reply = error.response
        message = f"{reply.url}: {reply.status_code} {reply.text[:500]}"
        if reply.status_code == 401:
            message = f"{server} refused: set PREFECT_API_AUTH_STRING to the server's user:password"
    except httpx.TransportError as error:
        message = f"no Prefect server at PREFECT_API_URL={server}: {error}"
    if secret := os.environ.get(args.slack_webhook_env, "").strip():
        message = message.replace(secret, "***")  # a server repeats what it refuses
    err.print(message, style="red")
    return 2


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m flows.automations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["apply", "check"])
    add = parser.add_argument
    add("--file", type=Path, default=FILE, help="default: deployments/automations.yaml")
    add("--slack-webhook-env", default="SLACK_WEBHOOK_URL", help="default: %(default)s")
    add("--no-slack", action="store_true", help="tell nobody; crashed runs are still run again")
    add("--missing-after", type=seconds, default="26h", help="default: %(default)s")
    add("--zombie-after", type=seconds, default="10m", help="default: %(default)s")
    add("--crashed-after", type=seconds, default="45s", help="default: %(default)s")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
