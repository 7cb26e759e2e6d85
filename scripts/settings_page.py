"""Writes docs/reference/settings.md from the JSON Schema of the settings; a test compares the two.

python -m scripts.settings_page

The text between the tables is `scripts/pages/settings.md`: a part for each section that needs one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ragmetrics.config import JUDGES, AlertSettings, JudgeKind, settings_schema
from ragmetrics.rules import Check, used_checks
from scripts.pages import cell, read_parts, table
from scripts.pages.kinds import Schema, choices, kind

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "settings.md"
_COLUMNS = ("key", "value", "default", "meaning")


def page() -> str:
    """The whole page. Raises KeyError for a text about a section that does not exist."""
    schema, texts = settings_schema(), read_parts("settings")
    parts = [texts.pop("")]
    for place, model in [("", schema), *_sections(schema, schema["$defs"], ())]:
        if place:
            text = texts.pop(place, "")
            parts.append(
                f"{'###' if ':' in place else '##'} `{place}:`\n\n{model['description']}\n"
            )
            parts += [text] if text else []
        parts.append(_table(place.replace(": ", "-"), model))
        parts += [_PLUGINS[place]()] if place in _PLUGINS else []
    if lost := [name for name in texts if name[0].islower()]:
        raise KeyError(f"scripts/pages/settings.md: no such section: {lost[0]}")
    parts += [f"## {title}\n\n{text}" for title, text in texts.items()]
    return "\n".join(parts)


def _sections(model: Schema, known: Schema, above: tuple[str, ...]) -> Iterator[tuple[str, Schema]]:
    """The sections in a model, each followed by those in it; a model that was shown is left out."""
    seen: list[str] = []
    for key, value in model["properties"].items():
        name = _section(value)
        if name is None or name in seen or known[name] is model:  # a judge may name another judge
            continue
        seen.append(name)
        place = (*above, key)
        yield ": ".join(place), known[name]
        yield from _sections(known[name], known, place)


def _section(value: Schema) -> str | None:
    """The name of the model of a value, or of the items of a list."""
    for choice in choices(value):
        if choice.get("type") == "array":
            return _section(choice.get("items", {}))  # a pair of numbers has none
        name = str(choice.get("$ref", "")).rpartition("/")[2]
        if name and name != "JsonValue":
            return name
    return None


def _table(place: str, model: Schema) -> str:
    required = model.get("required", ())
    return table(
        _COLUMNS,
        [
            (
                _key(key, value, place),
                cell(kind(value)),
                _default(key in required, value),
                cell(value["description"]),
            )
            for key, value in model["properties"].items()
        ],
    )


def _judges() -> str:
    """The bundled judges, by the names that `judge: name` may have."""
    kinds = sorted(JUDGES.bundled.values(), key=lambda kind: kind.key)
    rows = [(_judge_name(kind), cell(kind.docs)) for kind in kinds]
    return "The judges:\n\n" + table(("judge", "what it is"), rows)


def _judge_name(kind: JudgeKind) -> str:
    """Its names in the settings: alone, with an argument, and that of earlier versions."""
    names = [] if kind.argument_only else [f"`{kind.key}`"]
    names += [f"`{kind.key}:{kind.argument}`"] if kind.argument else []
    names += [f"earlier `{kind.former}`"] if kind.former else []
    return ", ".join(names)


def _checks() -> str:
    """The checks of the night, by the names that `alerts: checks` may give a limit."""
    rows = [(f"`{check.name}`", cell(check.definition), *_limit(check)) for check in used_checks()]
    return "The checks of the night:\n\n" + table(("check", "finds", "limit", "default"), rows)


def _limit(check: Check) -> tuple[str, str]:
    """The bounds of a check's limit, and its default or the key that has it."""
    if (limit := check.limit) is None:
        return "none", ""
    default = (
        f"that of `{key}`"
        if (key := AlertSettings.limit_keys.get(check.name))
        else f"{limit.default:g}"
    )
    return f"{limit.least:g} to {limit.most:g}", default


def _key(key: str, value: Schema, above: str) -> str:
    """The key; that of a section leads there."""
    place = f"{above}-{key}" if above else key
    leads = _section(value) and key not in ("judges", "from", "replaces", "also")
    return f"[`{key}`](#{place})" if leads else f"`{key}`"


def _default(required: bool, value: Schema) -> str:
    default = value.get("default")
    if required:
        return "required"
    if default is None or default == []:
        return "" if "default" not in value else "none"
    if isinstance(default, dict):
        return ""
    if value.get("format") == "duration":
        return f"`{default.removeprefix('PT').lower()}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, list):
        return ", ".join(f"`{one}`" for one in default)
    if isinstance(default, int | float):
        return f"{default:,g}" if abs(default) < 1e5 else f"{default:,}"
    return f"`{default}`"


_PLUGINS = {"judge": _judges, "alerts": _checks}
"""What lists the plugins of a section, below its table."""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
