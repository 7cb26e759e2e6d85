"""Prefect flows."""

import os

# A server that Prefect starts for a run by hand would call home; Prefect reads this on import.
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
