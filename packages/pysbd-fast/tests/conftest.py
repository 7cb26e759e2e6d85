"""Imports our rules before pysbd: its old escapes are errors of a strict run otherwise."""

import pysbd_fast  # noqa: F401
