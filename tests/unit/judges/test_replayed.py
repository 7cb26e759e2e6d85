"""The recorded judge: replies given before, played back from a file that people can read."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st
from pydantic import BaseModel

from ragmetrics.errors import InputError, JudgeError, JudgeRefused
from ragmetrics.judges import (
    Corpus,
    EmbeddingClient,
    HashedEmbedder,
    Judge,
    JudgeClient,
    LexicalJudge,
    Recorder,
    replayed as recorded,
)
from ragmetrics.judges.base import Reply
from ragmetrics.judges.replayed import RecordedJudge
from ragmetrics.metrics import metrics, select
from ragmetrics.records import Ask, LogRow, Prompt, Status
from ragmetrics.scoring.part import drive
from ragmetrics.storage import ScoredRow
from tests.fakes.scripted import alone


class Colour(BaseModel):
    colour: str


PROMPT = Prompt("colour", 1, Colour, "Name the colour.")
SKY, ROSE = Ask(PROMPT, {"thing": "sky"}), Ask(PROMPT, {"thing": "rose"})
ROWS = [
    LogRow(
        "1",
        "When was the tower opened?",
        ("It was opened in 1889.", "Mondays."),
        response="The tower was opened in 1889. It is closed.",
        reference="The tower was opened in May 1889 in Paris.",
        nuggets=({"text": "The tower was opened in 1889.", "importance": "vital"},),
    ),
    LogRow("2", "How tall is the tower?", ("The tower is 330 m tall.",), reference="It is tall."),
]


def recording(path: Path, *replies: tuple[Ask, str]) -> str:
    """Record replies to a file; return its path."""
    with Recorder(path) as recorder:
        for request, reply in replies:
            recorder.note("scripted", request, Reply(reply))
    return str(path)


def play(
    judge: Judge,
    recorder: Recorder | None = None,
    names: Sequence[str] = ("context_relevance", "context_relevancy", "context_recall"),
) -> list[ScoredRow]:
    """Score the rows."""
    chosen = select(names)
    record = recorder.note if recorder else None
    broker = JudgeClient(judge, EmbeddingClient(HashedEmbedder(Corpus())), record=record)

    async def main() -> list[ScoredRow]:
        return [row async for row in drive(ROWS, chosen, alone(broker))]

    return asyncio.run(main())


def reply(judge: RecordedJudge, request: Ask, attempt: int = 0) -> str:
    """The text of a reply."""
    return asyncio.run(judge.reply(request, attempt)).text


def test_plays_back_what_was_recorded(tmp_path: Path) -> None:
    """Each request gets its own reply, whatever the order, in any script."""
    judge = RecordedJudge(recording(tmp_path / "r.jsonl", (SKY, "blau\n青"), (ROSE, "red")))
    assert [reply(judge, ROSE), reply(judge, SKY)] == ["red", "blau\n青"]


def test_the_recordings_of_a_night_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of its judges, of the judges that they replace, and of both under `also`."""
    read: list[Path] = []
    lines = recorded._lines
    monkeypatch.setattr(recorded, "_lines", lambda path: read.append(path) or lines(path))
    names = [recording(tmp_path / f"{n}.jsonl", (SKY, f"blue {n}")) for n in range(4)]
    for name in names * 2:
        RecordedJudge(name)
    assert len(read) == 4


@given(st.text(st.characters()))
@example("one\u2028line\x85or two")
@example("half a character: \ud800")
def test_any_reply_survives_the_recording(text: str) -> None:
    """Whatever a model says: separators that are no ends of lines, halves of characters."""
    with tempfile.TemporaryDirectory() as folder:
        judge = RecordedJudge(recording(Path(folder, "r.jsonl"), (SKY, text), (ROSE, "red")))
    assert [reply(judge, SKY), reply(judge, ROSE)] == [text, "red"]


def test_replies_to_one_request_answer_its_attempts_in_order(tmp_path: Path) -> None:
    """A bad first reply is played again as the first; past the end the last one stands."""
    judge = RecordedJudge(
        recording(tmp_path / "r.jsonl", (SKY, "hm"), (ROSE, "red"), (SKY, "blue"))
    )
    assert [reply(judge, SKY, attempt) for attempt in range(4)] == ["hm", "blue", "blue", "blue"]


def test_a_recorded_run_gives_the_same_scores(tmp_path: Path) -> None:
    """Recording a run and playing it back is the same run, without the judge."""
    with Recorder(tmp_path / "r.jsonl") as recorder:
        live = play(LexicalJudge(Corpus()), recorder)
    assert play(RecordedJudge(str(tmp_path / "r.jsonl"))) == live


def test_a_request_that_is_not_recorded_fails_its_row_alone(tmp_path: Path) -> None:
    """A recording of yesterday's rows scores those of today that it knows."""
    with Recorder(tmp_path / "all.jsonl") as recorder:
        play(LexicalJudge(Corpus()), recorder)
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    keep = [line for line in lines if json.loads(line)["prompt"] != "support"]
    (tmp_path / "some.jsonl").write_text("\n".join(keep))
    found = play(RecordedJudge(str(tmp_path / "some.jsonl")))[0].scores
    assert found["context_relevance"].status == Status.SCORED
    assert found["context_recall"].status == Status.JUDGE_FAILED
    assert found["context_recall"].reason == "the recording has no reply to this support request"


def test_what_is_missing_is_no_refusal(tmp_path: Path) -> None:
    """JudgeRefused would end the run."""
    judge = RecordedJudge(recording(tmp_path / "r.jsonl", (SKY, "blue")))
    with pytest.raises(JudgeError) as raised:
        reply(judge, ROSE)
    assert not isinstance(raised.value, JudgeRefused)


def test_fingerprint_is_that_of_the_replies(tmp_path: Path) -> None:
    """The path and the order of requests do not matter; another reply does."""
    prints = [
        RecordedJudge(recording(tmp_path / name, *replies)).fingerprint
        for name, replies in {
            "a.jsonl": [(SKY, "blue"), (ROSE, "red")],
            "b.jsonl": [(ROSE, "red"), (SKY, "blue")],
            "c.jsonl": [(ROSE, "red"), (SKY, "grey")],
        }.items()
    ]
    assert prints[0] == prints[1] != prints[2]


def test_blank_lines_and_unknown_keys_are_passed_over(tmp_path: Path) -> None:
    """A recording may be edited by hand, and hold notes."""
    line = json.dumps({"key": SKY.key, "reply": "blue", "note": "by hand"})
    (tmp_path / "r.jsonl").write_text(f"\n{line}\n\n")
    assert reply(RecordedJudge(str(tmp_path / "r.jsonl")), SKY) == "blue"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"not json\n", 1),
        (b'{"key": "a", "reply": "b"}\n[1]\n', 2),
        (b'{"key": "a"}\n', 1),
        (b'{"key": "a", "reply": {"grade": 2}}\n', 1),
        (b'{"key": ["a"], "reply": "b"}\n', 1),
        (b'{"key": "a", "reply": "b"}\n{"key": 1, "reply": "b"}\n', 2),
        (b'{"key": null, "reply": "b"}\n', 1),
        (b"[" * 100_000, 1),
        (b"\xff\xfe\x00\n", 1),
    ],
)
def test_what_is_no_recording_is_told_by_line(tmp_path: Path, content: bytes, line: int) -> None:
    """A wrong file is the user's error, not a crash in the middle of the run."""
    (tmp_path / "r.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=f"line {line}: not a recorded reply"):
        RecordedJudge(str(tmp_path / "r.jsonl"))


def test_a_recording_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    """So is a folder."""
    with pytest.raises(InputError, match="No such file"):
        RecordedJudge(str(tmp_path / "none.jsonl"))
    with pytest.raises(InputError, match="Is a directory"):
        RecordedJudge(str(tmp_path))


def test_a_recording_that_cannot_be_written_is_an_input_error(tmp_path: Path) -> None:
    """Told before anything is asked."""
    with pytest.raises(InputError, match="No such file"), Recorder(tmp_path / "none" / "r.jsonl"):
        pass


def test_a_verdict_that_does_not_fit_fails_its_request(tmp_path: Path) -> None:
    """A recording edited by hand is not taken on trust, and other requests get their replies."""
    other = Ask(PROMPT, {"thing": "grass"})
    lines = [(SKY, "{}"), (ROSE, "not json"), (other, '{"colour": "green"}')]
    text = "".join(
        json.dumps({"key": request.key, "reply": reply, "as_is": True}) + "\n"
        for request, reply in lines
    )
    (tmp_path / "r.jsonl").write_text(text)
    judge = RecordedJudge(str(tmp_path / "r.jsonl"))
    for request in (SKY, ROSE):
        with pytest.raises(JudgeError, match="the recording's verdict does not fit"):
            reply(judge, request)
    assert asyncio.run(judge.reply(other, 0)).verdict == Colour(colour="green")


def test_every_verdict_of_ours_fits_when_it_is_played(tmp_path: Path) -> None:
    """Whatever the lexical judge says as it is, of every prompt, is said again."""
    names = [metric.name for metric in metrics().values() if not metric.name.startswith("ragas_")]
    with Recorder(tmp_path / "r.jsonl") as recorder:
        live = play(LexicalJudge(Corpus()), recorder, names)
    assert play(RecordedJudge(str(tmp_path / "r.jsonl")), None, names) == live
    played = map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines())
    asked = {prompt.name for one in select(names) for prompt in one.prompts}
    assert {record["prompt"] for record in played} == asked


def test_a_run_without_a_reply_leaves_the_recording_as_it_was(tmp_path: Path) -> None:
    """A wrong key must not cost what was paid for on another day."""
    tape = recording(tmp_path / "r.jsonl", (SKY, "blue"))
    with pytest.raises(JudgeRefused), Recorder(tape):
        raise JudgeRefused("wrong key")
    assert reply(RecordedJudge(tape), SKY) == "blue"
    assert [file.name for file in tmp_path.iterdir()] == ["r.jsonl"]


def test_a_run_that_breaks_off_keeps_its_replies(tmp_path: Path) -> None:
    """They are paid for."""
    with pytest.raises(KeyboardInterrupt), Recorder(tmp_path / "r.jsonl") as recorder:
        recorder.note("scripted", SKY, Reply("blue"))
        raise KeyboardInterrupt
    assert reply(RecordedJudge(str(tmp_path / "r.jsonl")), SKY) == "blue"
    assert [file.name for file in tmp_path.iterdir()] == ["r.jsonl"]


def test_a_recording_can_be_read_until_the_new_one_is_whole(tmp_path: Path) -> None:
    """The replies of a run stand beside it, and come through a link in its place."""
    tape = recording(tmp_path / "r.jsonl", (SKY, "blue"))
    (tmp_path / "link.jsonl").symlink_to(tape)
    with Recorder(tmp_path / "link.jsonl") as recorder:
        recorder.note("scripted", SKY, Reply("grey"))
        assert reply(RecordedJudge(tape), SKY) == "blue"
    assert reply(RecordedJudge(tape), SKY) == "grey"
    assert (tmp_path / "link.jsonl").is_symlink()


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """A folder or a device such as /dev/null, told before anything is asked."""
    for path in (tmp_path, Path("/dev/null")):
        with pytest.raises(InputError, match="is not a file"), Recorder(path):
            pass


def test_replies_that_cannot_take_their_place_are_not_lost(tmp_path: Path) -> None:
    """The error says where they are."""
    told = r"Is a directory; the replies are in .*r\.jsonl\.part"
    with pytest.raises(InputError, match=told), Recorder(tmp_path / "r.jsonl") as recorder:
        recorder.note("scripted", SKY, Reply("blue"))
        (tmp_path / "r.jsonl").mkdir()
    assert reply(RecordedJudge(str(tmp_path / "r.jsonl.part")), SKY) == "blue"


def test_a_recorder_without_a_path_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recording is off by default."""
    monkeypatch.chdir(tmp_path)
    with Recorder(None) as recorder:
        recorder.note("scripted", SKY, Reply("blue"))
    assert not list(tmp_path.iterdir())


def test_a_line_without_an_end_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A device or a damaged file may never end: it is read so far and no further."""
    monkeypatch.setattr(recorded, "_LONGEST_LINE", 1_000)
    with pytest.raises(InputError, match="a line has more than 1,000 bytes"):
        RecordedJudge("/dev/zero")
    (tmp_path / "replies.jsonl").write_bytes(b"\n" + b"x" * 2_000)
    with pytest.raises(InputError, match="a line has more than 1,000 bytes"):
        RecordedJudge(str(tmp_path / "replies.jsonl"))
