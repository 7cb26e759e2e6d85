"""Prefect flows. What Prefect reads on import stands here, before it is imported."""

import os

from retrieval_nightly import explained_imports

# A server that Prefect starts for a run by hand would call home,
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
# and takes longer than Prefect waits, 20 seconds, where the machine is busy.
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "180")

# The front of ragmetrics is the file that another project of the index replaces.
with explained_imports():
    from ragmetrics import Settings as Settings
