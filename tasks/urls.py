"""Links to what Prefect shows."""

from __future__ import annotations

from prefect.runtime import flow_run


def run_page() -> str | None:
    """Where Prefect shows the flow run; None where it ran without a server that has pages.

    A server of Prefect's own, for a run by hand, gives `None/flow-runs/...`.
    """
    url = flow_run.ui_url
    return url if url and "://" in url else None
