"""The states of all alerts after a night."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from pydantic import Field

from ragmetrics.records import AlertState, Notification, Record, Told, without_numbers


class AlertStore(Record):
    """All alert states by `Finding.key`."""

    night: date | None = None
    """The newest night of the states."""
    states: dict[str, AlertState] = Field(default_factory=dict)

    def heard(self, told: Iterable[Told]) -> AlertStore:
        """The states after people were told, in this order."""
        states = dict(self.states)
        for one in told:
            key = one.finding.key
            states[key] = states.get(key, AlertState()).heard(one)
        return self.model_copy(update={"states": states})

    @property
    def notified(self) -> Mapping[str, Notification]:
        """The last notification of each firing alert."""
        known = self.states.items()
        return {key: one.notified for key, one in known if one.told and one.notified}

    @property
    def snapshot(self) -> dict[str, AlertState]:
        """What later nights need of the states; findings without their numbers."""
        known = {key: one for key, one in self.states.items() if one.is_known}
        return {
            key: one.model_copy(update={"finding": one.finding and without_numbers(one.finding)})
            for key, one in known.items()
        }
