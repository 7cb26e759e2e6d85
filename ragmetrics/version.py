"""The version of this package, and the name by which pip knows it."""

__version__ = "0.1.0"
DISTRIBUTION = "retrieval-nightly"
"""The name on the package index; the package and the command are `ragmetrics`."""


def install_extra(extra: str) -> str:
    """The command that installs an extra."""
    return f'pip install "{DISTRIBUTION}[{extra}]"'
