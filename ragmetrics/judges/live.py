"""The live judge: an OpenAI-compatible endpoint, one call per request."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragmetrics.judges.base import Reply
from ragmetrics.judges.chat_completions import PATH, Envelope, chat_fingerprint, read_reply
from ragmetrics.judges.endpoint import Call, Endpoint
from ragmetrics.judges.http_errors import RequestRejected
from ragmetrics.model import Ask, Prompt

if TYPE_CHECKING:
    from ragmetrics.config import JudgeSettings
    from ragmetrics.judges.endpoint_config import Access
    from ragmetrics.storage import Files


_AT_HAND = 4
"""Requests per slot: while one waits before a retry, another one uses its slot."""


class LiveJudge:
    """Asks one endpoint. `Endpoint` does the retries and keeps to the limits."""

    note = ""
    keeps = True

    def __init__(self, access: Access, settings: JudgeSettings, files: Files | None = None) -> None:
        self.name = f"openai:{settings.model}"
        self.concurrency = _AT_HAND * settings.concurrency
        self.fingerprint = chat_fingerprint(settings, access.address)
        self._endpoint = Endpoint(access, settings, settings.model, files)
        self._settings = settings
        self._envelopes: dict[str, Envelope] = {}
        self._form = 0  # first format to try: the last one that another prompt turned to

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """The text of the reply, in the best format that the endpoint supports."""
        envelope = self._envelope(request.prompt)
        failures: Counter[str] = Counter()
        while True:
            form = envelope.form
            call = Call(PATH, request.prompt.name, envelope.fill(request), read_reply)
            try:
                reply, met = await self._endpoint.ask(call)
            except RequestRejected as error:
                failures.update(error.failures)
                if not envelope.turn(form, str(error)):
                    error.failures = dict(failures)
                    raise
                self._form = max(self._form, envelope.form)
                continue
            envelope.settled = True
            failures.update(met)
            return replace(reply, failures=dict(failures)) if failures else reply

    def evidence(self, request: Ask) -> None:
        """None: it gives a verdict alone."""

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()

    def _envelope(self, prompt: Prompt[Any]) -> Envelope:
        envelope = self._envelopes.get(prompt.digest)
        if envelope is None:
            envelope = Envelope(self._settings, prompt, self._form)
            self._envelopes[prompt.digest] = envelope
        return envelope
