"""The page of a flow run in Prefect: its address, and the artifacts on it."""

from __future__ import annotations

from datetime import date

from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.runtime import flow_run

from ragmetrics.storage import Files, Runs


def leave_artifact(markdown: str, *, key: str | None, description: str) -> None:
    """Add a Markdown artifact to the run; without a key it is on the run's page alone. An error is
    logged and fails nothing.
    """
    try:
        create_markdown_artifact(markdown, key=key, description=description)
    except Exception as error:  # of the client, the network, the server
        get_run_logger().warning("no artifact %s: %s", key, error)


def newest_key(key: str, files: Files, night: date) -> str | None:
    """The key of an artifact of a data set; None where the store has a newer night: what is written
    last under a key stands for the data set.
    """
    newest = Runs(files).outlines(last=1)
    return key if not newest or newest[-1].date <= night else None


def artifact_key(dataset: str) -> str:
    """The dataset's name in the characters of artifact keys: lower case, digits and dashes."""
    return "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in dataset.lower())


def run_page() -> str | None:
    """Where Prefect shows the flow run; None where it ran without a server that has pages.

    A server of Prefect's own, for a run by hand, gives `None/flow-runs/...`.
    """
    url = flow_run.ui_url
    return url if url and "://" in url else None
