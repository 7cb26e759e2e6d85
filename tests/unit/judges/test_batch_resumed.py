"""A batch judge that was killed, at whatever moment: the next one pays nothing twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragmetrics.errors import JudgeError, JudgePending, JudgeRefused
from ragmetrics.judges.batch import BatchJudge
from ragmetrics.judges.batch_records import BatchRecord, BatchRecords, all_batches
from ragmetrics.storage import Files
from tests.fakes.batch_judging import answer, asks, grades, make_judge, paid_once, records, run
from tests.fakes.clients import Bucket, JudgeServer

NUMBER = 6


@pytest.fixture
def make(judge_server: JudgeServer, tmp_path: Path) -> Callable[..., BatchJudge]:
    """Makes a judge that polls often, with a store in a folder."""
    return lambda **changes: make_judge(judge_server, Files(str(tmp_path)), **changes)


@pytest.fixture(scope="session")
def dead() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def alive() -> Iterator[int]:
    """The number of a process that is at work."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid


def left(make: Callable[..., BatchJudge], tmp_path: Path, **changes: Any) -> BatchRecord:
    """A batch at work whose run has gone, and its record, changed to what a kill would leave."""
    judge = make(wait_seconds=0.01)
    replies = run(answer(judge, asks(NUMBER)))
    assert {type(reply) for reply in replies} == {JudgePending}
    kept = BatchRecords(Files(str(tmp_path)), judge.fingerprint)
    (record,) = kept.refresh()
    return kept.put(record.model_copy(update=changes))


def resumed(make: Callable[..., BatchJudge], server: JudgeServer) -> dict[str, Any]:
    """Ask again with all that stood in the way gone; what the server was asked, all in all."""
    server.batch_faults(delay_seconds=0)
    assert grades(asks(NUMBER), run(answer(make(), asks(NUMBER)))) == [0, 2] * (NUMBER // 2)
    assert paid_once(server, NUMBER)
    return server.batch_stats()


def test_a_run_that_cannot_wait_leaves_its_batch_to_the_next_one(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, tmp_path: Path
) -> None:
    """Patience ends as JudgePending; whoever asks later gets that batch's answers."""
    judge_server.batch_faults(delay_seconds=60)
    left(make, tmp_path)
    assert resumed(make, judge_server)["created"] == 1


def test_killed_before_the_upload(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, tmp_path: Path, dead: int
) -> None:
    """An intent that reached nobody is dropped, and its requests are asked."""
    intent = BatchRecord(requests=[f"{ask.key}-0" for ask in asks(NUMBER)], process=dead)
    BatchRecords(Files(str(tmp_path)), make().fingerprint).put(intent)
    told = resumed(make, judge_server)
    assert told["created"] == told["steps"]["upload"] == 1
    assert "list" not in told["steps"]
    assert intent.nonce not in {batch.nonce for batch in all_batches(Files(str(tmp_path)))}


def test_killed_after_the_upload(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, tmp_path: Path, dead: int
) -> None:
    """A file without a batch: looked for by its nonce, then made a batch; not uploaded again."""
    judge_server.batch_faults(delay_seconds=60)
    record = left(make, tmp_path)
    file, judge_fingerprint = record.input_file, make().fingerprint
    judge_server.batch_faults(delay_seconds=0)
    other = BatchRecord(
        requests=record.requests, process=dead, input_file=file, sent_at=datetime.now(UTC)
    )
    kept = BatchRecords(Files(str(tmp_path)), judge_fingerprint)
    kept.remove(record.nonce)
    kept.put(other)
    before = judge_server.batch_stats()
    assert grades(asks(NUMBER), run(answer(make(), asks(NUMBER)))) == [0, 2] * (NUMBER // 2)
    told = judge_server.batch_stats()
    assert told["steps"]["upload"] == before["steps"]["upload"]
    assert told["created"] == before["created"] + 1
    assert told["steps"]["list"] >= 1


def test_killed_right_after_the_creation(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, tmp_path: Path, dead: int
) -> None:
    """A batch whose id nobody wrote down is found by its nonce, among others and beyond a page."""
    judge_server.batch_faults(delay_seconds=60)
    record = left(make, tmp_path, batch=None, process=dead)
    run(answer(make_judge(judge_server, None, wait_seconds=0.01), asks(2, "others")))
    kept = BatchRecords(Files(str(tmp_path)), make().fingerprint)
    told = resumed_with_others(make, judge_server)
    assert told["created"] == 2
    (found,) = kept.refresh()
    assert found.nonce == record.nonce
    assert found.batch is not None


def resumed_with_others(make: Callable[..., BatchJudge], server: JudgeServer) -> dict[str, Any]:
    """Like `resumed`, where other batches were created too."""
    server.batch_faults(delay_seconds=0)
    assert grades(asks(NUMBER), run(answer(make(), asks(NUMBER)))) == [0, 2] * (NUMBER // 2)
    return server.batch_stats()


def test_killed_half_way_through_keeping_the_replies(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """Replies that were handed out, but not kept, are read again from the batch's output."""
    first = make()
    assert len(grades(asks(NUMBER), run(answer(first, asks(NUMBER))))) == NUMBER
    assert resumed(make, judge_server)["created"] == 1


def test_a_batch_goes_off_the_record_when_all_its_replies_are_kept(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, tmp_path: Path
) -> None:
    """Settled requests are forgotten, unsettled ones stay; with the last one the record goes."""
    judge, requests = make(), asks(NUMBER)

    async def settle(judge: BatchJudge, settled: int) -> None:
        await asyncio.gather(*(judge.reply(request, 0) for request in requests))
        for request in requests[:settled]:
            judge.settled(request)
        await judge.close()

    run(settle(judge, NUMBER - 1))
    (record,) = all_batches(Files(str(tmp_path)))
    assert record.requests == [f"{requests[-1].key}-0"]
    run(answer(again := make(), requests[-1:]))
    assert judge_server.batch_stats()["created"] == 1

    async def settle_last() -> None:
        await again_last.reply(requests[-1], 0)
        again_last.settled(requests[-1])
        await again_last.close()

    again_last = make()
    run(settle_last())
    assert records(again, tmp_path) == []
    assert paid_once(judge_server, NUMBER)


def test_an_unreadable_reply_is_replayed_too(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """A killed run's first attempts, unreadable, are read again and not asked again."""
    judge_server.faults(fail={"malformed": 1}, fail_attempts=1)

    async def attempts(judge: BatchJudge) -> list[str]:
        texts = [(await judge.reply(asks(1)[0], attempt)).text for attempt in (0, 1)]
        await judge.close()
        return texts

    first = run(attempts(make()))
    assert run(attempts(make())) == first
    assert first[0] != first[1]
    assert judge_server.batch_stats()["created"] == 2


def test_a_lost_answer_to_the_creation_makes_no_second_batch(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """The connection drops after the batch was created: it is found, not created again."""
    judge_server.batch_faults(drop_steps={"create": 1})
    assert resumed(make, judge_server)["created"] == 1


def test_an_error_on_creation_is_tried_again(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """A 500 before the batch was created: looked for in vain, then created."""
    judge_server.batch_faults(fail_steps={"create": 1})
    assert resumed(make, judge_server)["created"] == 1


@pytest.mark.parametrize("fault", ["fail_steps", "drop_steps"])
def test_an_upload_that_fails_is_tried_again_whole(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, fault: str
) -> None:
    """Half an upload is read again from its start; a second file costs nothing."""
    judge_server.batch_faults(**{fault: {"upload": 2}})
    replies = run(answer(make(sdk_retries=2), asks(NUMBER)))
    assert grades(asks(NUMBER), replies) == [0, 2] * (NUMBER // 2)
    assert len(set(judge_server.batch_stats()["bytes"])) == 1
    assert paid_once(judge_server, NUMBER)


@pytest.mark.parametrize("fault", ["fail_steps", "drop_steps"])
def test_trouble_while_looking_loses_no_batch(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, fault: str
) -> None:
    """Errors and lost connections of the polling and of the download are waited out."""
    judge_server.batch_faults(**{fault: {"look": 3, "content": 2}})
    assert resumed(make, judge_server)["created"] == 1


def test_an_outage_ends_the_run_and_not_the_batch(
    make: Callable[..., BatchJudge], judge_server: JudgeServer
) -> None:
    """An endpoint that stays away ends the run as pending; the next run reads the answers."""
    judge_server.batch_faults(fail_steps={"look": 10_000})
    replies = run(answer(make(deadline_seconds=0.1), asks(NUMBER)))
    assert {type(reply) for reply in replies} == {JudgePending}
    assert "state of a batch cannot be read now" in str(replies[0])
    judge_server.batch_faults(fail_steps={})
    assert resumed(make, judge_server)["created"] == 1


def test_a_key_refused_while_waiting_ends_the_run_and_keeps_the_batch(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, tmp_path: Path
) -> None:
    """A revoked key is said; with a good one the batch is gone on with."""
    judge_server.batch_faults(delay_seconds=60)
    left(make, tmp_path)
    judge_server.faults(api_key="another")
    replies = run(answer(make(), asks(NUMBER)))
    assert {type(reply) for reply in replies} == {JudgeRefused}
    judge_server.faults(api_key=None)
    assert resumed(make, judge_server)["created"] == 1


def test_a_batch_that_the_endpoint_does_not_know_is_asked_anew(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, tmp_path: Path
) -> None:
    """A record of another project's batch, or of one deleted, holds nobody up."""
    judge_server.batch_faults(delay_seconds=60)
    left(make, tmp_path, batch="batch_999999")
    judge_server.batch_faults(delay_seconds=0)
    assert len(grades(asks(NUMBER), run(answer(make(), asks(NUMBER))))) == NUMBER
    assert [batch.batch for batch in all_batches(Files(str(tmp_path)))] == ["batch_000001"]


def test_output_that_was_deleted_is_asked_anew(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, tmp_path: Path
) -> None:
    """Files that are gone answer nothing: the requests go in a further batch."""
    judge_server.batch_faults(delay_seconds=60)
    left(make, tmp_path)
    judge_server.batch_faults(delay_seconds=0, keeps_files=False)
    replies = run(answer(make(), asks(NUMBER)))
    assert all(isinstance(reply, JudgeError) for reply in replies)
    assert "has no answer to it (after 3 batches)" in str(replies[0])


def test_another_process_that_hands_in_the_same_is_waited_for(
    make: Callable[..., BatchJudge], judge_server: JudgeServer, tmp_path: Path, alive: int
) -> None:
    """While its process lives, a batch without an id is not submitted by anybody else."""
    judge_server.batch_faults(delay_seconds=60)
    record = left(make, tmp_path, batch=None, process=alive)
    batch = "batch_000000"
    judge_server.batch_faults(delay_seconds=0)
    judge = make()

    async def hand_in() -> list[Any]:
        asked = asyncio.create_task(answer(judge, asks(NUMBER)))
        while not (any(job.waiting for job in judge._jobs.all())):
            await asyncio.sleep(0.01)
        kept = BatchRecords(Files(str(tmp_path)), judge.fingerprint)
        kept.put(record.model_copy(update={"batch": batch}))
        return await asked

    assert len(grades(asks(NUMBER), run(hand_in()))) == NUMBER
    told = judge_server.batch_stats()
    assert told["created"] == 1
    assert "list" not in told["steps"]


def test_records_older_than_the_files_of_their_batches_are_removed(
    make: Callable[..., BatchJudge], tmp_path: Path
) -> None:
    """The API keeps files for 30 days; after that a record is of no use."""
    old = datetime.now(UTC) - timedelta(days=31)
    kept = BatchRecords(Files(str(tmp_path)), make().fingerprint)
    kept.put(BatchRecord(requests=["a"], created_at=old, batch="batch_1"))
    young = kept.put(BatchRecord(requests=["b"], batch="batch_2"))
    assert kept.refresh() == [young]
    assert list(all_batches(Files(str(tmp_path)))) == [young]


def test_a_run_that_is_stopped_says_what_goes_on(
    make: Callable[..., BatchJudge],
    judge_server: JudgeServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The batches at work are named, with how to go on with them and how to stop them."""
    judge_server.batch_faults(delay_seconds=60)

    async def stop(judge: BatchJudge) -> None:
        asked = asyncio.create_task(answer(judge, asks(2)))
        while not judge_server.batch_stats()["steps"].get("look"):
            await asyncio.sleep(0.02)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)

    run(stop(make()))
    assert "still in progress and will be charged: batch_000000. The same command" in caplog.text
    assert "`ragmetrics batches STORE --cancel ID`" in caplog.text
    judge_server.reset()
    judge_server.batch_faults(delay_seconds=60)
    run(stop(make_judge(judge_server, None)))
    assert "without a store, no later run can use them" in caplog.text


def test_records_live_in_a_bucket_too(s3: Bucket, judge_server: JudgeServer) -> None:
    """On S3 a batch is gone on with as in a folder."""
    judge_server.batch_faults(delay_seconds=60)
    run(answer(make_judge(judge_server, Files(s3.uri), wait_seconds=0.01), asks(NUMBER)))
    assert resumed(lambda: make_judge(judge_server, Files(s3.uri)), judge_server)["created"] == 1
