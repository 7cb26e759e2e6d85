"""`ragmetrics schema`: the JSON Schema of the settings file, for editors."""

from __future__ import annotations

from ragmetrics.cli.options import print_json
from ragmetrics.config import settings_schema


def schema() -> None:
    """Print the JSON Schema of ragmetrics.yaml, for editors."""
    print_json(settings_schema())
