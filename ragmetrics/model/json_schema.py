"""JSON schemas in the strict form that OpenAI's servers require."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

_OF_NAMES = ("properties", "$defs")
_OF_ONE = ("items", "additionalProperties")
_OF_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")


def strict_schema(schema: Schema, prefix: str = "") -> dict[str, Any]:
    """The schema with all keys required and no other keys, in every object with named keys.

    `prefix` is put before the names of definitions, so that several schemas can be combined.
    """
    found = {key: value for key, value in schema.items() if key not in ("default", "discriminator")}
    for key in _OF_NAMES:
        if key in found:
            before = prefix if key == "$defs" else ""
            found[key] = {
                before + name: strict_schema(one, prefix) for name, one in found[key].items()
            }
    for key in _OF_LISTS:
        if key in found:
            found[key] = [strict_schema(one, prefix) for one in found[key]]
    for key in _OF_ONE:
        if isinstance(found.get(key), Mapping):
            found[key] = strict_schema(found[key], prefix)
    if "properties" in found:
        found |= {"additionalProperties": False, "required": list(found["properties"])}
    if "$ref" in found:
        found["$ref"] = f"#/$defs/{prefix}{found['$ref'].removeprefix('#/$defs/')}"
    return found
