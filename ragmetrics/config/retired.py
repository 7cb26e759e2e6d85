"""Settings keys that were removed: they are still read, with a warning that names the successor."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

log = logging.getLogger(__name__)


def retired_variables(retired: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The removed keys that environment variables set, which no field reads."""
    lower = {name.lower(): value for name, value in environment.items()}
    return {key: lower[name] for key in retired if (name := f"ragmetrics_{key}") in lower}


def without_retired(values: object, retired: Mapping[str, str]) -> Any:
    """The values without removed keys. `retired` says of each what serves in its place, and one
    that is set logs it as a warning.
    """
    if not isinstance(values, Mapping) or not retired.keys() & values.keys():
        return values
    for key in retired.keys() & values.keys():
        if values[key] is not None:
            log.warning("settings: `%s` was removed and has no effect: %s", key, retired[key])
    return {key: value for key, value in values.items() if key not in retired}
