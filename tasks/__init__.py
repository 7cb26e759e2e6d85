"""Prefect tasks: thin wrappers around the steps of `ragmetrics`."""

import os

if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
    # Every process that runs a flow or one of its tasks imports this before its first run.
    from tasks.tracing import export

    export()
