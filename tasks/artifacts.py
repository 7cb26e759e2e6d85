"""Artifacts of a flow run, for people who look at it in Prefect."""

from __future__ import annotations

from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact


def leave_artifact(markdown: str, *, key: str, description: str) -> None:
    """Add a Markdown artifact to the run. An error is logged and fails nothing."""
    try:
        create_markdown_artifact(markdown, key=key, description=description)
    except Exception as error:  # of the client, the network, the server
        get_run_logger().warning("no artifact %s: %s", key, error)


def artifact_key(dataset: str) -> str:
    """The dataset's name in the characters of artifact keys: lower case, digits and dashes."""
    return "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in dataset.lower())
