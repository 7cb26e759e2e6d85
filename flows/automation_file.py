"""Reads the file of automations, fills in its values, and compares it with a server."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml
from prefect.events.schemas.automations import AutomationCore
from pydantic import ValidationError

from ragmetrics.errors import InputError
from ragmetrics.text import load_yaml

if TYPE_CHECKING:
    from prefect.events.schemas.automations import Automation

PREFIX = "ragmetrics: "
"""The prefix of our automations' names. One that is not in the file is deleted."""
_PLACE = re.compile(r"\$\{(\w+)\}")

Change = Literal["create", "update", "delete", "keep"]


@dataclass(frozen=True)
class AutomationChange:
    """One automation, and the change that makes the server agree with the file."""

    change: Change
    name: str
    wanted: AutomationCore | None = None
    id: uuid.UUID | None = None


def read_automations(path: Path, values: Mapping[str, Any]) -> list[AutomationCore]:
    """The automations of a file, with `values` in place of `${NAME}`.

    Raises InputError for a file that is none, a name without a value, a key that Prefect does not
    know and would ignore, and an automation that is not named as ours.
    """
    try:
        raw = load_yaml(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: {error}") from error
    listed = raw.get("automations") if isinstance(raw, dict) else None
    if not listed or not all(isinstance(one, dict) for one in listed):
        raise InputError(f"{path}: no list of automations under `automations:`")
    return [_automation(path, _filled(one, values, path)) for one in listed]


def without_telling(automations: Sequence[AutomationCore]) -> list[AutomationCore]:
    """The automations that do more than notify people, without their messages."""
    silent = [
        automation.model_copy(
            update={"actions": [do for do in automation.actions if do.type != "send-notification"]}
        )
        for automation in automations
    ]
    return [one for one in silent if one.actions]


def _filled(value: Any, values: Mapping[str, Any], path: Path) -> Any:
    """A value in which whole scalars `${NAME}` are replaced."""
    if isinstance(value, dict):
        return {key: _filled(one, values, path) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(item, values, path) for item in value]
    place = _PLACE.fullmatch(value) if isinstance(value, str) else None
    if not place:
        return value
    if place[1] not in values:
        raise InputError(f"{path}: {place[0]} has no value; there are: {', '.join(sorted(values))}")
    return values[place[1]]


def _automation(path: Path, raw: Mapping[str, Any]) -> AutomationCore:
    name = raw.get("name", "without a name")
    if not str(name).startswith(PREFIX):
        raise InputError(f"{path}: {name!r}: the name should begin with {PREFIX!r}")
    try:
        automation = _whole(AutomationCore.model_validate(raw))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{path}: {name!r}: {place}: {first['msg']}") from error
    if unknown := next(_unknown(raw, automation.model_dump(mode="json")), None):
        raise InputError(f"{path}: {name!r}: Prefect knows no {unknown!r} and would ignore it")
    return automation


def _whole(automation: AutomationCore) -> AutomationCore:
    """A copy with all defaults set: an update sends only fields that were set."""
    fields = automation.model_dump(exclude={"id", "created", "updated", "owner_resource"})
    return AutomationCore.model_validate(fields)


def _unknown(raw: Any, known: Any, place: str = "") -> Iterator[str]:
    if isinstance(raw, Mapping) and isinstance(known, Mapping):
        for key, value in raw.items():
            if key not in known:
                yield f"{place}{key}"
            else:
                yield from _unknown(value, known[key], f"{place}{key}.")
    elif isinstance(raw, list) and isinstance(known, list):
        for item, other in zip(raw, known, strict=False):
            yield from _unknown(item, other, place)


def plan(wanted: Sequence[AutomationCore], known: Sequence[Automation]) -> list[AutomationChange]:
    """The changes that turn the server's automations into the wanted ones."""
    left = list(known)
    steps = []
    for automation in wanted:
        same = next((other for other in left if other.name == automation.name), None)
        if same is None:
            steps.append(AutomationChange("create", automation.name, automation))
            continue
        left.remove(same)
        change: Change = "keep" if _whole(same) == automation else "update"
        steps.append(AutomationChange(change, automation.name, automation, same.id))
    return [*steps, *(AutomationChange("delete", other.name, id=other.id) for other in left)]
