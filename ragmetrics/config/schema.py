"""The JSON Schema of the settings file, with the descriptions of all keys."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from textwrap import dedent
from typing import Any

from pydantic import BaseModel

from ragmetrics.config.base import models_in
from ragmetrics.config.judge import JudgeSettings
from ragmetrics.config.judge_kinds import JUDGES
from ragmetrics.config.sections import WriteBackSettings
from ragmetrics.config.settings import Settings

_BY_NAME = ("judge", "embeddings", "runner")


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of the settings file."""
    schema = Settings.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Settings of ragmetrics"
    _add_targets(schema)
    _add_judges(schema)
    described = {one.__name__: one for one in _models(Settings)}
    for name, part in {"Settings": schema, **schema.get("$defs", {})}.items():
        for key, text in field_docstrings(described[name]).items() if name in described else ():
            if key in part.get("properties", {}):
                part["properties"][key]["description"] = text
    properties = schema["properties"]
    for key in _BY_NAME:
        properties[key] = _or_name(properties[key])
    properties["judges"]["items"] = _or_name(properties["judges"]["items"])
    return schema


def _add_targets(schema: dict[str, Any]) -> None:
    """The sections of the targets of `write_back`, which a registry has and no field."""
    section = schema["$defs"]["WriteBackSettings"]
    section["additionalProperties"] = False
    for name, model in WriteBackSettings.plugin_models().items():
        part = model.model_json_schema(ref_template="#/$defs/{model}")
        schema["$defs"] |= part.pop("$defs", {}) | {model.__name__: part}
        reference = {"$ref": f"#/$defs/{model.__name__}"}
        section["properties"][name] = {
            "anyOf": [reference, {"type": "null"}],
            "default": None,
            "description": (model.__doc__ or "").partition("\n")[0],
        }


def _add_judges(schema: dict[str, Any]) -> None:
    """The keys that single kinds of judges add, beside those of all judges."""
    section = schema["$defs"]["JudgeSettings"]["properties"]
    for kind in JUDGES.bundled.values():
        if kind.settings is not JudgeSettings:
            part = kind.settings.model_json_schema(ref_template="#/$defs/{model}")
            part = part["$defs"].pop(kind.settings.__name__) if "$ref" in part else part
            texts = field_docstrings(kind.settings)
            for key, value in part["properties"].items():
                section.setdefault(key, {**value, "description": texts.get(key, "")})


def _or_name(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """A section that may also be only a name, as in `judge: lexical`."""
    kept = {key: value for key, value in mapping.items() if key in ("description", "default")}
    rest = {key: value for key, value in mapping.items() if key not in kept}
    return {**kept, "anyOf": [{"type": "string"}, rest]}


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        for inner in models_in(field.annotation):
            if inner is not model:  # the judge of a learned judge is a judge
                yield from _models(inner)
    yield from getattr(model, "plugin_models", dict)().values()


def field_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The docstrings that stand below the fields of a model."""
    texts: dict[str, str] = {}
    for base in reversed(model.__mro__[:-1]):
        if not issubclass(base, BaseModel) or base.__module__.startswith("pydantic"):
            continue
        (body,) = ast.parse(dedent(inspect.getsource(base))).body
        before: ast.stmt | None = None
        for statement in body.body if isinstance(body, ast.ClassDef) else ():
            text = _text(statement)
            if text and isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name):
                texts[_key(model, before.target.id)] = " ".join(text.split())
            before = statement
    return texts


def _key(model: type[BaseModel], name: str) -> str:
    """The key in the file: `for` of the field `for_`."""
    field = model.model_fields.get(name)
    return (field and field.alias) or name


def _text(statement: ast.stmt) -> str:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
