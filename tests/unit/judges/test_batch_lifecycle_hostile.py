"""The batch judge where the endpoint, the environment or the store is not what it should be."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.types import Batch

from ragmetrics.config import JudgeSettings
from ragmetrics.errors import JudgeError, JudgeRefused, StoreError
from ragmetrics.judges.base import Access, Reply
from ragmetrics.judges.batch import BatchJudge
from ragmetrics.judges.batch_api import BatchApi, make_client
from ragmetrics.judges.batch_files import Fault
from ragmetrics.judges.batch_lifecycle import BatchRun
from ragmetrics.judges.batch_records import BatchRecord, BatchRecords, all_batches
from ragmetrics.storage import Files
from tests.fakes import http_server
from tests.fakes.batch_judging import answer, asks, grades, make_judge, run
from tests.fakes.clients import JudgeServer
from tests.fakes.http_server import Handler

PAGE = b"<html>Please log in</html>"
BODY = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}


@pytest.fixture
def make(judge_server: JudgeServer, tmp_path: Path) -> Callable[..., BatchJudge]:
    """Makes a judge that polls often, with a store in a folder."""
    return lambda **changes: make_judge(judge_server, Files(str(tmp_path)), **changes)


@contextmanager
def serving(pages: Mapping[str, bytes], kind: str, missing: int = 0) -> Iterator[str]:
    """The address of a server with these pages, and a login page for the rest; `missing` bytes
    are promised and never sent.
    """

    class Page(Handler):
        def take(self) -> None:
            self.body()
            page = pages.get(self.path.removeprefix("/v1/"), PAGE)
            length = str(len(page) + missing)
            self.answer(200, page, {"Content-Type": kind, "Content-Length": length})

    with http_server.serving(Page) as url:
        yield f"{url}/v1"


def api_of(url: str) -> BatchApi:
    """The Batch API of an address."""
    return BatchApi(AsyncOpenAI(api_key="testing", base_url=url, max_retries=0))


# The endpoint


def test_a_web_page_in_place_of_the_api_is_said(make: Callable[..., BatchJudge]) -> None:
    """A login page answers 200 to an upload: told at once, in words, and nothing is on record."""
    with serving({}, "text/html") as url:
        judge = make(base_url=url)
        (error,) = run(answer(judge, asks(1)))
    assert isinstance(error, JudgeRefused)
    assert "not that of an OpenAI-compatible server, is base_url right?" in str(error)
    assert "Please log in" in str(error)
    assert judge._records.refresh() == []


CALLS: dict[str, Callable[[BatchApi, BatchRecord], Any]] = {
    "create": lambda api, record: api.create(record),
    "find": lambda api, record: api.find(record),
    "look": lambda api, _: api.look("batch_1"),
    "cancel": lambda api, _: api.cancel("batch_1"),
}
ANSWERS = [
    PAGE,
    b"[]",
    b"null",
    b'"batch"',
    b"{}",
    b'{"id": 5, "status": "completed", "created_at": 1, "data": [{"id": 5}]}',
    b'{"id": "a", "status": ["completed"], "created_at": 1, "data": 7}',
    b'{"id": "a", "status": "completed", "created_at": 1e300, "data": [[]]}',
    b'{"id": "a", "status": "completed", "created_at": "now", "data": [null]}',
]


@pytest.mark.process
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["text/html", "application/json"])
@pytest.mark.parametrize("page", ANSWERS)
def test_answers_of_any_kind_are_refused_in_words(call: str, kind: str, page: bytes) -> None:
    """What is no batch, and no list of them, never comes out as an error of ours."""
    record = BatchRecord(requests=["a"], input_file="file-1")
    paths = ("batches", "batches?limit=100", "batches/batch_1", "batches/batch_1/cancel")

    async def ask(url: str) -> Any:
        api = api_of(url)
        try:
            return await CALLS[call](api, record)
        finally:
            await api.close()

    with serving(dict.fromkeys(paths, page), kind) as url:
        try:
            found = run(ask(url))
        except JudgeError as error:
            assert "not that of an OpenAI-compatible server" in str(error)
        else:
            # An empty list, or an id that is one after all.
            assert found is None or (call, found) == ("create", "a")


def test_a_refusal_while_looking_for_a_batch_keeps_its_record(
    make: Callable[..., BatchJudge], tmp_path: Path
) -> None:
    """A batch that a killed run may have made, and paid for, is not forgotten behind a login."""
    requests = [f"{ask.key}-0" for ask in asks(1)]
    record = BatchRecord(
        requests=requests, process=2**31 - 1, input_file="file-1", sent_at=datetime.now(UTC)
    )
    with serving({}, "text/html") as url:
        judge = make(base_url=url)
        BatchRecords(files := Files(str(tmp_path)), judge.fingerprint).put(record)
        (error,) = run(answer(judge, asks(1)))
    assert isinstance(error, JudgeRefused)
    assert [batch.nonce for batch in all_batches(files)] == [record.nonce]


@pytest.mark.process
def test_a_download_that_is_cut_off_is_tried_again() -> None:
    """The SDK tells of it in another library's words: ours says that it passes."""
    batch = Batch.model_construct(output_file_id="file-1", error_file_id=None)

    async def read(url: str) -> Any:
        api = api_of(url)
        try:
            return await api.outcomes(batch)
        finally:
            await api.close()

    with (
        serving({"files/file-1/content": b"{}\n"}, "application/jsonl", missing=99) as url,
        pytest.raises(JudgeError, match="was lost") as raised,
    ):
        run(read(url))
    assert raised.value.transient


@pytest.mark.process
def test_an_error_in_one_file_takes_away_no_reply_of_the_other() -> None:
    """Whichever file says it: a reply that was paid for is used."""
    good = {"custom_id": "a", "response": {"status_code": 200, "body": BODY}}
    bad = {"custom_id": "a", "response": None, "error": {"code": "x", "message": "no"}}
    pages = {
        "files/good/content": json.dumps(good).encode(),
        "files/bad/content": json.dumps(bad).encode(),
    }

    async def read(url: str, error: str, output: str) -> Mapping[str, Reply | Fault]:
        api = api_of(url)
        batch = Batch.model_construct(error_file_id=error, output_file_id=output)
        try:
            return await api.outcomes(batch)
        finally:
            await api.close()

    with serving(pages, "application/jsonl") as url:
        for error, output in (("good", "bad"), ("bad", "good")):
            assert isinstance(run(read(url, error, output))["a"], Reply)


# The environment


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "ftp://127.0.0.1:9"])
def test_a_proxy_that_cannot_be_used_is_said(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    """One sentence, and no traceback of a library that is not installed."""
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(JudgeRefused, match="the proxy that the environment names cannot be used"):
        make_client(
            Access("http://judge.example/v1/", "key"), JudgeSettings(name="openai-batch", model="m")
        )


def test_a_full_temporary_disk_is_said(
    make: Callable[..., BatchJudge], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Input files are written there first: nothing is sent, and the error is one of storage."""

    def full(**_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    (error,) = run(answer(make(), asks(1)))
    assert isinstance(error, StoreError)
    assert "TMPDIR sets their folder" in str(error)


# Handing out


def test_who_waits_for_what_a_record_no_longer_has_is_asked_again(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process took requests off the record meanwhile: nobody waits for ever."""
    real, requests = BatchRun.outcomes, asks(4)
    cut: list[str] = []

    async def fewer(self: BatchRun) -> dict[str, Reply | Fault]:
        found = await real(self)
        if not cut:
            cut.append(name := f"{requests[0].key}-0")
            del found[name]
        return found

    monkeypatch.setattr(BatchRun, "outcomes", fewer)
    assert grades(requests, run(answer(make(), requests))) == [0, 2, 0, 2]
    assert judge_server.batch_stats()["sizes"] == [4, 1]


def test_an_error_in_handing_out_reaches_all_who_still_wait(
    make: Callable[..., BatchJudge], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who have their answer keep it; the others are told, and none hangs."""
    requests, given = asks(4), []
    real = BatchJudge._answer

    def failing(self: BatchJudge, item: Any, reply: Reply) -> None:
        if len(given) == 2:
            raise RuntimeError("broken")
        given.append(item)
        real(self, item, reply)

    monkeypatch.setattr(BatchJudge, "_answer", failing)
    replies = run(answer(make(), requests))
    assert [type(reply) for reply in replies] == [Reply, Reply, RuntimeError, RuntimeError]


def test_what_others_took_off_a_record_is_read_from_the_output_all_the_same(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, tmp_path: Path
) -> None:
    """A batch that another process hands in: what that has kept is not paid for again here."""
    judge, requests = make(), asks(4)
    judge_server.batch_faults(delay_seconds=60)
    run(answer(make(wait_seconds=0.01), requests))
    kept = BatchRecords(Files(str(tmp_path)), judge.fingerprint)
    (record,) = kept.refresh()
    kept.put(record.model_copy(update={"batch": None, "process": 1}))
    judge_server.batch_faults(delay_seconds=0)

    async def hand_in() -> list[Any]:
        asked = asyncio.create_task(answer(judge, requests))
        while not any(job.waiting for job in judge._jobs.all()):
            await asyncio.sleep(0.01)
        kept.put(record.model_copy(update={"requests": record.requests[2:]}))
        return await asked

    assert grades(requests, run(hand_in())) == [0, 2, 0, 2]
    assert judge_server.batch_stats()["created"] == 1


# The store


def damages(nonce: str) -> list[bytes]:
    """What may stand in place of a record of this nonce."""
    good = {"nonce": nonce, "requests": ["a"]}
    changes: list[dict[str, Any]] = [
        {"created_at": "2026-01-01T00:00:00"},
        {"process": 10**30},
        {"nonce": "../../elsewhere"},
        {"requests": None},
    ]
    return [
        b"",
        b'{"nonce": "tor',
        b"\xff\xfe",
        b"[" * 99_999,
        b"[]",
        *(json.dumps({**good, **change}).encode() for change in changes),
    ]


def test_a_damaged_record_is_left_aside_and_never_removed(
    make: Callable[..., BatchJudge], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It may name a batch that is paid for: it is named once, and the run goes on without it.

    An empty one was removed, by whoever may not delete.
    """
    judge = make()
    folder = tmp_path / "batches" / f"judge={judge.fingerprint}"
    folder.mkdir(parents=True)
    torn = {f"{n:032x}.json": data for n, data in enumerate(damages(f"{5:032x}"))}
    torn["notes.txt"] = b"mine"
    for name, data in torn.items():
        (folder / name).write_bytes(data)
    with caplog.at_level(logging.WARNING):
        assert grades(asks(2), run(answer(judge, asks(2)))) == [0, 2]
    for name, data in torn.items():
        assert (folder / name).read_bytes() == data
        told = caplog.text.count(f"{name} is ignored: it is not a record of a batch")
        assert told == (1 if data else 0)
    assert len(list(all_batches(Files(str(tmp_path))))) == 1
