"""The key `write_back`: tracing tools that get the scores of each night."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from ragmetrics.config.base import SettingsModel
from ragmetrics.plugins import Kind, UnusablePlugin

WriteBackStatus = Literal["scored", "skipped", "failed"]


TARGETS: Kind[Any] = Kind(
    "ragmetrics.targets",
    "ragmetrics.delivery.write_back.targets",
    "ragmetrics.delivery.write_back.target:TargetKind",
    "target",
)


class WriteBackSettings(SettingsModel):
    """Which scores are sent to which tracing tools, and how long a night tries."""

    model_config = ConfigDict(extra="allow")  # a key for each target

    metrics: tuple[str, ...] | None = None
    """The metrics whose scores are sent. None: all of the night."""
    statuses: tuple[WriteBackStatus, ...] = ("scored", "skipped", "failed")
    """Which scores are sent: those with a value, those that were not to be scored (the metric does
    not apply, the row is not in the sample or over the budget), and those that failed."""
    batch_size: int = Field(200, ge=1, le=1_000)
    """Number of scores in one request."""
    timeout_seconds: float = Field(30, gt=0, le=600)
    """Timeout of one request."""
    retry_delay_seconds: float = Field(1, gt=0, le=60)
    """Pause before a failed request is repeated. It doubles each time, up to 32 times as long."""
    retry_seconds: float = Field(300, ge=0, le=86_400)
    """How long one run waits for a target that fails, all waits together. The scores that are left
    wait for the next run."""

    @property
    def targets(self) -> dict[str, SettingsModel]:
        """The settings of the configured targets by name, in alphabetical order."""
        return dict(sorted((self.model_extra or {}).items()))

    @model_validator(mode="before")
    @classmethod
    def _read_targets(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        fields = {key: value[key] for key in value if key in cls.model_fields}
        others = {key: value[key] for key in value if key not in fields and value[key] is not None}
        return fields | {key: _target_settings(key, others[key]) for key in others}

    @model_validator(mode="after")
    def _has_target(self) -> WriteBackSettings:
        if not self.targets:
            raise ValueError(f"needs at least one of {', '.join(TARGETS.names)}")
        if not self.statuses:
            raise ValueError("statuses: needs at least one of scored, skipped and failed")
        return self

    @classmethod
    def plugin_models(cls) -> dict[str, type[SettingsModel]]:
        """The sections of the bundled targets, by their keys."""
        return {name: kind.settings for name, kind in TARGETS.bundled.items()}


def _target_settings(name: str, value: object) -> SettingsModel:
    """The settings of a target. Raises ValidationError with the place of each mistake."""
    if name not in TARGETS.names:
        unknown = InitErrorDetails(type="extra_forbidden", loc=(name,), input=value)
        raise ValidationError.from_exception_data("write_back", [unknown])
    try:
        settings: SettingsModel = TARGETS.find(name).settings.model_validate(value)
    except UnusablePlugin:  # told where scores are sent, and by doctor; the night goes on
        return SettingsModel()
    except ValidationError as error:
        raise ValidationError.from_exception_data(
            "write_back",
            [
                InitErrorDetails(
                    type=mistake["type"],
                    loc=(name, *mistake["loc"]),
                    input=mistake["input"],
                    ctx=mistake.get("ctx", {}),
                )
                for mistake in error.errors()
            ],
        ) from None
    return settings
