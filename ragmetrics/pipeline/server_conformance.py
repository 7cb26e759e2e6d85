"""The conformance tests of judges, targets and channels: see `ragmetrics.testing`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from pydantic import SecretStr

from ragmetrics.config import ChannelSettings, JudgeKind, JudgeSettings, field_docstrings
from ragmetrics.delivery import ChannelKind, EvaluationResult, TargetError, TargetKind, Unconfirmed
from ragmetrics.errors import JudgeError, JudgeRefused
from ragmetrics.judges import Corpus, JudgeParts
from ragmetrics.messages import Message, Note
from ragmetrics.metrics import GRADE
from ragmetrics.plugins import hold
from ragmetrics.records import Ask
from ragmetrics.storage import Files

RESULT = EvaluationResult(
    "help-desk",
    "5b8efff798038103d269b633813fc60c",
    "eee19b7ec3c1b174",
    "context_recall",
    0.5,
    "scored",
    "1 of 2 sentences",
    datetime(2026, 11, 19, 8, tzinfo=UTC),
)
"""A score that is sent to targets."""
_KEY = "secret-of-a-judge"


def check_judge(kind: JudgeKind) -> None:
    """Raise AssertionError unless a kind of judge documents its settings, and the judge of its
    sample has the same fingerprint twice and ends every request by a reply or a JudgeError.
    """
    hold(kind.docs.strip().partition("\n")[0].endswith("."), "its module has a docstring")
    hold(issubclass(kind.settings, JudgeSettings), "its settings are JudgeSettings")
    own = {field.alias or name for name, field in kind.settings.model_fields.items()}
    hold(own <= field_docstrings(kind.settings).keys(), "each of its settings has a docstring")
    hold(not kind.live or kind.remote, "only a remote judge is live")
    hold(not kind.reads_prompts or kind.writes, "a judge that reads prompts writes replies")
    hold(kind.sample is not None, "it has a sample")
    if not kind.remote:
        asyncio.run(_check_judge(kind, ""))
        return
    for status, body in ((200, b"<html>Log in</html>"), (401, b"{}"), (500, b"{}"), (200, b"[]")):
        with _server(status, body, [_KEY]) as url:
            asyncio.run(_check_judge(kind, url))


async def _check_judge(kind: JudgeKind, url: str) -> None:
    """The judge of the sample, at a server that gives no reply."""
    height = "The Eiffel Tower in Paris is 330 metres high."
    request = Ask(GRADE, {"question": "How high is the Eiffel Tower in Paris?", "context": height})
    with TemporaryDirectory() as folder:
        await _check_sample(kind, url, request, Files(folder))


async def _check_sample(kind: JudgeKind, url: str, request: Ask, files: Files) -> None:
    for path, text in kind.sample_files(request).items():
        files.write(path, text.encode())
    sample = json.dumps({"name": kind.key, **(kind.sample or {})})
    written = sample.replace("{url}", url).replace("{folder}", json.dumps(files.root)[1:-1])
    brief = {"retries": 0, "deadline_seconds": 5.0}
    settings = kind.settings.model_validate_json(written).model_copy(update=brief)
    parts = JudgeParts(Corpus(), files, SecretStr(_KEY))
    try:
        judge, again = (kind.make(settings, parts) for _ in range(2))
    except JudgeRefused as error:
        hold("pip install" in str(error), f"only a missing extra is in its way: {error}")
        return
    hold(bool(judge.name) and isinstance(judge.note, str), "it has a name and a note")
    hold(judge.fingerprint == again.fingerprint, "equal settings have one fingerprint")
    hold(judge.concurrency >= 1, "it takes at least one request at a time")
    try:
        reply = await judge.reply(request, 0)
        hold(not kind.remote, f"no reply is none: {reply}")
        hold(bool(reply.text or reply.verdict), "a reply has a text or a verdict")
    except JudgeError as error:
        hold(kind.remote, f"it answers a request: {error}")
        hold(_KEY not in str(error), "no error contains a key")
    finally:
        await judge.close()
        await again.close()


def check_target(kind: TargetKind) -> None:
    """Raise AssertionError unless a target can be made from its sample, needs its keys, and
    confirms nothing that its tool did not: no page of a proxy, no empty answer, no error.
    """
    hold(bool(kind.settings.__doc__), "its settings have a docstring")
    environment = {name: f"secret-of-{name}" for name in kind.variables}
    for name in kind.variables:
        _raises(kind, "http://127.0.0.1:9", {**environment, name: ""}, "an empty key is refused")
    _raises(kind, "http://127.0.0.1:9", environment, "no connection is no confirmation")
    for status, body in ((200, b"<html>Log in</html>"), (401, b"{}"), (503, b"{}"), (302, b"")):
        with _server(status, body, [*environment.values()]) as url:
            error = _raises(kind, url, environment, f"{status} {body!r} is no confirmation")
            hold("secret-of-" not in str(error), "no error contains a key")
            hold(error.transient is (status == 503), f"{status} is transient only if it is 503")


def check_channel(kind: ChannelKind, **keys: Any) -> None:
    """Raise AssertionError unless a channel confirms nothing that its service did not, tells what a
    repetition may change, and shows nothing of the address. `keys` are further keys of its entry.
    """
    entry = {"kind": kind.name, "url_env": "TEAM_URL", **kind.sample_keys, **keys}
    settings = kind.settings.model_validate(entry)
    hold("secret" in kind.sample, "the address of its sample has `secret` in its path")
    for status in (401, 503):
        with _server(status, b"", []) as url:
            error = _unconfirmed(kind, settings, url.removeprefix("http://"))
        hold(error.transient is (status == 503), f"{status} is transient only if it is 503")
    hold(_unconfirmed(kind, settings, "127.0.0.1:9").transient, "no connection is transient")


def _unconfirmed(kind: ChannelKind, settings: ChannelSettings, host: str) -> Unconfirmed:
    """The error of sending one message to a server."""
    try:
        kind.send(
            Message("Alert", [Note("low")]), settings, SecretStr(kind.sample.format(host=host))
        )
    except Unconfirmed as error:
        hold("secret" not in str(error), "no error contains the address")
        return error
    raise AssertionError("this does not hold: an error of the service is no confirmation")


def _raises(kind: TargetKind, url: str, environment: Mapping[str, str], what: str) -> TargetError:
    """The error of sending one result to a server."""
    written = json.dumps(dict(kind.sample)).replace("{url}", url)
    try:
        target = kind.make(kind.settings.model_validate_json(written), 2.0, environment)
        try:
            target.send([RESULT])
        finally:
            target.close()
    except TargetError as error:
        return error
    raise AssertionError(f"this does not hold: {what}")


@contextmanager
def _server(status: int, body: bytes, secrets: Sequence[str]) -> Iterator[str]:
    """The address of a server that answers every request so, with the secrets in a header."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status, " ".join(secrets))
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_PATCH = do_POST  # noqa: N815 - the names that the library calls

        def log_message(self, *args: Any) -> None:
            """Write nothing to the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
