"""`retriever:` in the settings: what it may say, and what a person sees who mistypes it."""

from __future__ import annotations

from typing import Any

import pytest

from ragmetrics.config import RetrieverSettings, make_settings
from ragmetrics.errors import SettingsError

URL = "https://search.example.com/query"


def told(**retriever: Any) -> str:
    """The error that these settings give."""
    with pytest.raises(SettingsError) as error:
        make_settings({"retriever": retriever})
    return str(error.value)


def test_a_url_alone_is_enough() -> None:
    """Then question and build go by our own names, and so does what comes back."""
    settings = RetrieverSettings(url=URL)
    assert settings.sent == {"user_input": "{user_input}", "build": "{build}"}
    assert (settings.method, settings.contexts, settings.max_failed) == ("POST", None, 0.02)


def test_params_alone_send_no_body() -> None:
    """By GET or POST."""
    for method in ("GET", "POST"):
        settings = RetrieverSettings(url=URL, method=method, params={"q": "{user_input}"})
        assert settings.sent is None


def test_all_of_it_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As every other key."""
    monkeypatch.setenv("RAGMETRICS_RETRIEVER__CONCURRENCY", "3")
    monkeypatch.setenv("RAGMETRICS_RETRIEVER__BODY", '{"q": ["{user_input}"]}')
    found = make_settings({"retriever": {"url": URL}}).retriever
    assert found
    assert (found.concurrency, found.body) == (3, {"q": ["{user_input}"]})


@pytest.mark.parametrize(
    ("retriever", "message"),
    [
        ({}, "retriever: set either url or entrypoint"),
        ({"url": URL, "entrypoint": "a:b"}, "set either url or entrypoint"),
        ({"url": "search.example.com"}, "retriever.url: should look like https://search.example"),
        ({"url": "ftp://search.example.com/"}, "retriever.url: should look like https://"),
        ({"url": "http://[::1/"}, "retriever.url: should look like https://"),
        ({"url": URL + "/{user_input}"}, "retriever.url: {build} is the only placeholder"),
        ({"entrypoint": "retrieve"}, "retriever.entrypoint: "),
        ({"entrypoint": "a:b", "body": {"q": "x"}}, "body: has no effect on a Python function"),
        ({"url": URL, "method": "PUT"}, "retriever.method: "),
        ({"url": URL, "body": {"q": "{question}"}}, "{user_input} is missing in body or params"),
        ({"url": URL, "params": {"q": 3}}, "{user_input} is missing in body or params"),
        ({"url": URL, "method": "GET"}, "{user_input} is missing in body or params"),
        ({"url": URL, "method": "GET", "body": "{user_input}"}, "body: a GET request has no body"),
        ({"url": URL, "body": ["{user_input}", float("nan")]}, "retriever.body: contains a number"),
        ({"url": URL, "contexts": "hits[].text"}, "contexts: should be a dotted path such as"),
        ({"url": URL, "ids": "$.hits.id"}, "retriever.ids: should be a dotted path such as"),
        (
            {"url": URL, "headers": {"X Y": "1"}},
            "retriever.headers: 'X Y' is not a valid header name",
        ),
        (
            {"url": URL, "headers": {"X": "a\r\nY: b"}},
            "retriever.headers: X: contains a line break",
        ),
        ({"url": URL, "headers_env": {"X-Y": "a b"}}, "X-Y: should name an environment variable"),
        ({"url": URL, "concurrency": 0}, "retriever.concurrency: "),
        ({"url": URL, "max_failed": 2}, "retriever.max_failed: "),
        ({"url": URL, "colour": "red"}, "retriever.colour: there is no such key"),
    ],
)
def test_a_mistake_is_told_by_key(retriever: dict[str, Any], message: str) -> None:
    """With what is wrong, and what would be right."""
    assert message in told(**retriever)


@pytest.mark.parametrize(
    "retriever",
    [
        {"url": "https://me:s3cr3t@search.example.com/"},
        {"url": "ftp://me:s3cr3t@search.example.com/"},
        {"url": f"{URL}?key=s3cr3t"},
        {"url": URL, "headers": {"authorization": "s3cr3t"}},
        {"url": URL, "headers": {"X-API-Key": "s3cr3t"}},
        {"url": URL, "headers": {"Cookie": "s3cr3t"}},
        {"url": URL, "headers_env": {"Authorization": "Bearer s3cr3t"}},
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(retriever: dict[str, Any]) -> None:
    """The error says that the environment is its place."""
    message = told(**retriever)
    assert "environment variable" in message or "`headers_env`" in message
    assert "s3cr3t" not in message


def test_an_idempotency_key_is_no_secret() -> None:
    """A header may have `key` in its name."""
    settings = RetrieverSettings(url=URL, headers={"Idempotency-Key": "nightly"})
    assert settings.headers == {"Idempotency-Key": "nightly"}
