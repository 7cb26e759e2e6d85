"""Previews messages on a terminal or a page, without sending them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from markupsafe import Markup
from rich.console import Console

from ragmetrics.comparison import load_gate
from ragmetrics.config import Settings
from ragmetrics.dashboard import render_page
from ragmetrics.delivery import gate_message, night_messages, sample_messages
from ragmetrics.errors import InputError
from ragmetrics.messages import FORMATS, Message
from ragmetrics.records import build_words, is_name
from ragmetrics.storage import Files, Runs


@dataclass(frozen=True)
class Preview:
    """A message with a title. None: no message would be sent, and the title says so."""

    title: str
    message: Message | None

    def as_json(self) -> dict[str, Any]:
        """The message as Slack would get it. Slack's Block Kit Builder accepts `blocks`."""
        message, slack = self.message, FORMATS.find("slack")
        sent = message and {
            "text": slack.escape(message.text),
            "blocks": slack.render(message.blocks),
        }
        return {"title": self.title, "message": sent}


@dataclass(frozen=True)
class Previews:
    """Messages that can be shown, without sending them."""

    shown: Sequence[Preview]

    @classmethod
    def of_night(cls, settings: Settings, files: Files, day: date | None) -> Previews:
        """The messages of a night for the configured channels, each once. None: the newest night.

        Raises InputError when there is no such night.
        """
        newest = next(iter(Runs(files).nights(last=1)), None)
        manifest = Runs(files).current(day) if day else newest
        if manifest is None:
            known = f"; the newest night is {newest.date}" if newest else ""
            raise InputError(f"no night{f' of {day}' if day else ''} in {files.uri()}{known}")
        distinct: dict[str, tuple[Message, list[str]]] = {}
        for name, message in night_messages(settings, files, manifest):
            distinct.setdefault(repr(message.blocks), (message, []))[1].append(name)
        title = f"Night of {manifest.date}"
        if len(distinct) > 1:
            several = distinct.values()
            return cls([Preview(f"{title}, {_destination(*one)}", one[0]) for one in several])
        shown = [Preview(title, message) for message, _ in distinct.values()]
        return cls(shown or [Preview(f"{title}: no message", None)])

    @classmethod
    def of_build(cls, settings: Settings, files: Files, build: str) -> Previews:
        """The message about an index build, if its verdict causes one.

        Raises InputError when the build has no verdict.
        """
        gate = load_gate(files, build) if is_name(build) else None
        if gate is None:
            raise InputError(
                f"no verdict on the index build {build!r} in {files.uri()}; run "
                "`ragmetrics gate --build NAME` first"
            )
        message = gate_message(settings, gate)
        title = f"Index {build_words(build)}"
        title = title if message else f"{title}: {gate.verdict}, no message"
        return cls([Preview(title, message)])

    @classmethod
    def of_samples(cls, redact: bool) -> Previews:
        """One message of every kind, of a made-up dataset."""
        return cls([Preview(title, message) for title, message in sample_messages(redact)])

    def as_json(self) -> dict[str, Any]:
        """The output of `ragmetrics alerts preview --json`."""
        return {"messages": [preview.as_json() for preview in self.shown]}

    def print(self, console: Console) -> None:
        """Print each message."""
        terminal = FORMATS.find("terminal")
        for preview in self.shown:
            if preview.message is None:
                console.print(f"{preview.title}.", markup=False, soft_wrap=True)
                continue
            console.rule(preview.title.replace("[", "\\["), align="left")
            text = terminal.render(preview.message.blocks)
            console.print(text, markup=False, soft_wrap=True)
            console.print()

    def write_page(self, path: Path) -> None:
        """Write one self-contained page with all messages. Raises InputError when that fails."""
        html = FORMATS.find("html")
        bodies = [
            preview.message and Markup(html.render(preview.message.body))  # noqa: S704 - escaped
            for preview in self.shown
        ]
        page = render_page("messages.html", 0, previews=zip(self.shown, bodies, strict=True))
        try:
            path.write_bytes(page)
        except OSError as error:
            raise InputError(f"--html {path}: {error.strerror or error}") from None


def _destination(message: Message, names: Sequence[str]) -> str:
    follows = message.about and not message.opens
    return f"to {', '.join(names)}{', in the thread of its alerts' if follows else ''}"
