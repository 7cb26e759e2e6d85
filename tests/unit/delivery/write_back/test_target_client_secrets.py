"""The judge's key and the logs stay between us and the endpoint that the settings name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from ragmetrics.config import JudgeSettings
from ragmetrics.config.base import make_section
from ragmetrics.errors import JudgeRefused, SettingsError
from ragmetrics.judges.base import Reply, find_access
from ragmetrics.judges.batch_files import read_outputs
from ragmetrics.judges.live import LiveJudge
from ragmetrics.metrics import select
from ragmetrics.records import Ask
from ragmetrics.retriever.python_retriever import said_by
from tests.fakes.http_server import Handler, serving

KEY = "sk-SECRET-4711"


@contextmanager
def server(status: int, location: str = "") -> Iterator[tuple[str, list[str]]]:
    """An endpoint that answers so and repeats the key; its URL, and the paths it was asked for."""
    asked: list[str] = []

    class Refusing(Handler):
        def take(self) -> None:
            asked.append(self.path)
            said = f"Incorrect API key provided: {self.headers['Authorization']}"
            body = json.dumps({"error": {"message": said}}).encode()
            self.answer(status, body, {"Location": location} if location else None)

    with serving(Refusing) as url:
        yield url, asked


def refusal(base_url: str) -> str:
    """What the judge at an address is refused with."""
    settings = JudgeSettings(name="openai", base_url=base_url)
    prompt = select(["context_relevance"])[0].prompts[0]

    async def ask() -> None:
        judge = LiveJudge(find_access(settings, base_url, SecretStr(KEY)), settings)
        try:
            await judge.reply(Ask(prompt, {"question": "Why?", "context": "So."}), 0)
        finally:
            await judge.close()

    with pytest.raises(JudgeRefused) as refused:
        asyncio.run(ask())
    return str(refused.value)


@pytest.mark.process
def test_a_key_that_a_server_repeats_is_not_told() -> None:
    """Messages are printed, kept with the run and sent to Slack."""
    with server(401) as (url, _):
        told = refusal(f"{url}/v1")
    assert "Incorrect API key provided: Bearer ***" in told
    assert KEY not in told


@pytest.mark.process
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_told_and_not_followed(status: int) -> None:
    """The logs' text goes to nobody whom the settings do not name."""
    with server(200) as (elsewhere, asked), server(status, f"{elsewhere}/v1") as (url, _):
        assert f"redirects to {elsewhere}/v1: is base_url right?" in refusal(f"{url}/v1")
    assert asked == []


@pytest.mark.parametrize(
    "url", ["https://me:SECRET@llm.example.com/v1", "https://llm.example.com/v1?api-key=SECRET"]
)
def test_a_secret_has_no_place_in_an_url(url: str) -> None:
    """URLs are shown in messages; the error names the place for a key and repeats nothing."""
    with pytest.raises(SettingsError, match="put the key into an environment variable") as told:
        make_section(JudgeSettings, "judge", {"name": "openai", "base_url": url})
    assert "SECRET" not in str(told.value)


@pytest.mark.parametrize("key", ["sk-SECRET\nX: y", "sk-SECRET\x00", "schlüssel"])
def test_a_key_that_is_none_is_refused_unseen(key: str) -> None:
    """A line break would end the header, and the error would print it."""
    with pytest.raises(JudgeRefused, match="the key in OPENAI_API_KEY holds") as told:
        find_access(JudgeSettings(name="openai"), None, SecretStr(key))
    assert "SECRET" not in str(told.value)


def whole_reply(said: str) -> str:
    """An answer of an OpenAI-compatible endpoint with this text, written as JSON."""
    return json.dumps({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]})


REPEATED = {
    "as it is": whole_reply(f'{{"reason": "{KEY}"}}'),
    "as numbers": whole_reply(f'{{"reason": "{KEY}"}}').replace("S", "\\u0053"),
    "in JSON inside JSON": whole_reply(json.dumps({"reason": KEY}).replace("E", "\\u0045")),
}


@pytest.mark.process
@pytest.mark.parametrize("form", REPEATED)
def test_a_key_in_a_reply_is_not_kept(form: str) -> None:
    """Replies are stored, and their reasons are on pages: no text of one holds the key."""

    class Repeating(Handler):
        def take(self) -> None:
            self.body()
            self.answer(200, REPEATED[form].encode())

    settings = JudgeSettings(name="openai")
    prompt = select(["context_relevance"])[0].prompts[0]

    async def ask(base_url: str) -> str:
        judge = LiveJudge(find_access(settings, base_url, SecretStr(KEY)), settings)
        try:
            reply = await judge.reply(Ask(prompt, {"question": "Why?", "context": "So."}), 0)
            return reply.text
        finally:
            await judge.close()

    with serving(Repeating) as url:
        text = asyncio.run(ask(f"{url}/v1"))
    assert json.loads(text) == {"reason": "***"}


@pytest.mark.parametrize("form", REPEATED)
def test_a_key_in_the_output_of_a_batch_is_not_kept(form: str, tmp_path: Path) -> None:
    """The same for replies that come in a file."""
    body = f'{{"custom_id": "a", "response": {{"status_code": 200, "body": {REPEATED[form]}}}}}'
    (tmp_path / "output.jsonl").write_text(body, "utf-8")
    reply = read_outputs(tmp_path / "output.jsonl", secrets=[KEY])["a"]
    assert isinstance(reply, Reply)
    assert json.loads(reply.text) == {"reason": "***"}


@pytest.mark.parametrize(
    "said",
    [f"401: key {KEY} is wrong", f"postgresql://me:{KEY}@db/search", "amqp://me:pass@queue"],
)
def test_a_secret_in_an_error_of_the_retriever_is_not_told(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function says its key, which it has from the environment, or an address with a login."""
    monkeypatch.setenv("SEARCH_API_KEY", KEY)
    told = said_by(ValueError(said))
    assert "***" in told
    assert KEY not in told
    assert "pass" not in told
