"""Prefect tasks: thin wrappers around the steps of `ragmetrics`."""

import os

from retrieval_nightly import explained_imports

# The front of ragmetrics is the file that another project of the index replaces.
with explained_imports():
    from ragmetrics import Settings as Settings

if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
    # Every process that runs a flow or one of its tasks imports this before its first run.
    from tasks.tracing import export

    export()
