"""Plugins of other packages: one that is broken costs only itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ragmetrics.config import JUDGES, TARGETS, is_lexical, make_settings
from ragmetrics.config.judge_kinds import judge_kind
from ragmetrics.delivery import target_problems
from ragmetrics.delivery.write_back.target import GuardedTarget, TargetError
from ragmetrics.errors import InputError, JudgeRefused, SettingsError
from ragmetrics.http import event_loop
from ragmetrics.judges import Corpus, Judge, foreign_judge, make_judges
from ragmetrics.judges.foreign_judge import ForeignJudge
from ragmetrics.logs import LogSet, find_logs
from ragmetrics.metrics import GRADE
from ragmetrics.pipeline import evaluate
from ragmetrics.records import Ask, LogRow, Rejected
from ragmetrics.testing import check_judge
from tests.fakes.http_server import Handler, serving
from tests.fakes.logs import make_rows, write_jsonl
from tests.fakes.plugins import plugin_site

PRESET = '''r"""Records of a house.

A retrieval is each record.
"""
from ragmetrics import Preset, Span


def _read(record):
    yield Span("record", {"user_input": record["q"], "retrieved_contexts": [record["c"]]})


house = Preset("house", __doc__, _read, frozenset(["q", "c"]), rows=True)
'''
TARGET = '''from ragmetrics import SettingsModel, TargetKind


class House(SettingsModel):
    """A house."""

    street: str


house = TargetKind("house", House, None, {"street": "High Street"})
'''

JUDGE = '''"""A judge that likes everything."""
import asyncio
import threading

from ragmetrics import JudgeKind, JudgeSettings, Reply


class HouseSettings(JudgeSettings):
    """The judge of the house."""

    mood: str = "good"
    """Its mood."""


class House:
    note, concurrency, cacheable = "a judge of the house", 1, False

    def __init__(self, mood):
        self.name, self.fingerprint = "house", f"house-{mood}"

    async def reply(self, request, attempt):
        return Reply(text=\'{"grade": 2}\')

    def evidence(self, request):
        return None

    async def close(self):
        pass


house = JudgeKind("house", lambda judge, parts: House(judge.mood), HouseSettings, sample={})
'''
REMOTE = '''"""A judge behind a protocol of its own."""
from ragmetrics import Endpoint, JudgeKind, JudgeSettings, Reply


def _read(answer):
    return Reply(text=answer["said"], prompt_tokens=answer["read"])


class Remote:
    name, note, concurrency, cacheable = "remote", "speaks its own protocol", 4, True

    def __init__(self, settings, parts):
        self.fingerprint = f"remote-{settings.model}"
        self._endpoint = Endpoint.of(settings, parts)

    async def reply(self, request, attempt):
        messages = request.prompt.messages(request.data)
        body = {"task": "\\n\\n".join(message["content"] for message in messages)}
        return await self._endpoint.reply("/judge", request.prompt.name, body, _read)

    def evidence(self, request):
        return None

    async def close(self):
        await self._endpoint.close()


remote = JudgeKind(
    "remote", Remote, JudgeSettings, remote=True, live=True, reads_prompts=True, writes=True,
    sample={"base_url": "{url}", "model": "m"},
)
'''
GOOD_REPLY = "return Reply(text='{\"grade\": 2}')"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Install packages, as `plugin_site` says."""
    with plugin_site(tmp_path, monkeypatch) as put:
        yield put


def test_a_preset_of_another_package_reads_logs(
    install: Callable[..., None], tmp_path: Path
) -> None:
    """Named in the settings as a bundled one."""
    install("ragmetrics.presets", "house", PRESET, "house")
    path = write_jsonl(tmp_path / "log.jsonl", [{"q": "What?", "c": "That."}])
    assert make_settings({"preset": "house"}).preset == "house"
    (row,) = LogSet(*find_logs(str(path)), preset="house").read()
    assert (row.user_input, row.retrieved_contexts) == ("What?", ("That.",))


def test_a_broken_preset_costs_only_its_logs(install: Callable[..., None], tmp_path: Path) -> None:
    """Settings that name it are read; its logs say which package cannot be imported."""
    install("ragmetrics.presets", "bad", "raise SystemExit(1)\n", "house")
    assert make_settings({"preset": "house"}).preset == "house"
    path = write_jsonl(tmp_path / "log.jsonl", [{"q": "What?"}])
    with pytest.raises(InputError, match="preset 'house' of bad cannot be imported"):
        list(LogSet(*find_logs(str(path)), preset="house").read())


def test_a_target_of_another_package_has_its_own_settings(install: Callable[..., None]) -> None:
    """A mistake in them is told with its place, and a key that is almost a target is told too."""
    install(TARGETS.group, "house", TARGET, "house")
    settings = make_settings({"write_back": {"house": {"street": "Low Street"}}})
    assert settings.write_back
    assert settings.write_back.targets["house"].model_dump() == {"street": "Low Street"}
    with pytest.raises(SettingsError, match=r"write_back\.house\.street"):
        make_settings({"write_back": {"house": {"street": 3}}})
    with pytest.raises(SettingsError, match=r"write_back\.langfus:.*did you mean `langfuse`"):
        make_settings({"write_back": {"langfus": {}}})


def test_a_broken_target_waits_and_stops_nothing(install: Callable[..., None]) -> None:
    """The settings are read, and doctor has the reason."""
    install(TARGETS.group, "bad", "raise ImportError('no such library')\n", "house")
    settings = make_settings({"write_back": {"house": {"street": "x"}, "langfuse": {}}})
    problems = target_problems(settings, {"LANGFUSE_PUBLIC_KEY": "a", "LANGFUSE_SECRET_KEY": "b"})
    assert problems["langfuse"] == ""
    assert "target 'house' of bad cannot be imported" in problems["house"]


def test_a_judge_of_another_package_judges(install: Callable[..., None]) -> None:
    """With settings of its own, which only its kind has, and it conforms."""
    install(JUDGES.group, "house", JUDGE, "house")
    check_judge(judge_kind("house"))
    settings = make_settings({"judge": {"name": "house", "mood": "bad"}, "shards": 1})
    assert make_settings(settings.model_dump(mode="json")).judge == settings.judge
    result = evaluate(make_rows(3), ["context_relevance"], settings=settings)
    (summary,) = result.manifest.metrics
    assert (summary.scored, summary.mean) == (3, 1.0)
    for wrong in ({"name": "house", "mod": "bad"}, {"name": "openai", "mood": "bad"}):
        with pytest.raises(SettingsError, match=r"judge\.moo?d: there is no such key"):
            make_settings({"judge": wrong})


def test_a_broken_judge_is_named(install: Callable[..., None]) -> None:
    """Its settings are read, and a run with no other judge is refused with the reason."""
    install(JUDGES.group, "bad", "raise SystemExit(1)\n", "house", "rerank", "lexical")
    settings = make_settings({"judge": {"name": "house", "mood": "good"}, "shards": 1})
    with pytest.raises(JudgeRefused, match="judge 'house' of bad cannot be imported"):
        evaluate(make_rows(3), ["context_relevance"], settings=settings)
    assert len(JUDGES.problems(())) == 2


def test_a_judge_that_cannot_be_imported_costs_itself(install: Callable[..., None]) -> None:
    """The others of a panel judge, and the night says what is missing."""
    install(JUDGES.group, "bad", "raise ImportError('no such library')\n", "house")
    panel = make_settings({"judges": [{"name": "house", "mood": "good"}, "lexical"], "shards": 1})
    result = evaluate(make_rows(3), ["context_relevance"], settings=panel)
    assert result.manifest.metrics[0].scored == 3
    assert any("no such library" in problem for problem in result.manifest.problems)


def test_a_stored_name_is_for_bundled_judges(install: Callable[..., None]) -> None:
    """By it the kind of a night's judge could not be found again."""
    source = JUDGE.replace("sample={}", 'stored="maison"')
    install(JUDGES.group, "house", source, "house")
    assert "only a bundled judge may have stored" in judge_kind("house").problem


def test_a_judge_that_cannot_be_loaded_is_not_lexical(install: Callable[..., None]) -> None:
    """A store that it judged is read all the same."""
    install(JUDGES.group, "bad", "raise SystemExit(1)\n", "house")
    assert not is_lexical("house")


def give_up_soon(monkeypatch: pytest.MonkeyPatch, *, closing: bool = False) -> None:
    """The calls of a judge that hangs have 0.2 s, or its closing alone. It is made in good time."""
    init, close = ForeignJudge.__init__, ForeignJudge.close

    def made(self: ForeignJudge, judge: Judge, seconds: float) -> None:
        init(self, judge, seconds if closing else 0.2)

    async def closed(self: ForeignJudge) -> None:
        self._seconds = 0.2
        await close(self)

    monkeypatch.setattr(ForeignJudge, "__init__", made)
    monkeypatch.setattr(ForeignJudge, "close", closed)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("return 1 / 0", "ZeroDivisionError"),
        ("return None", "gave NoneType and no Reply"),
        ("return Reply(text=None)", "gave a malformed Reply: text: should be"),
        ("return Reply(text='x', prompt_tokens=None)", "malformed Reply: prompt_tokens: should be"),
        ("await asyncio.Event().wait()", "gave no reply in 0.2 s"),
        ("raise asyncio.CancelledError", "cancelled its request"),
        ("raise SystemExit(1)", "SystemExit"),
    ],
)
def test_a_judge_that_fails_costs_its_rows(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch, reply: str, reason: str
) -> None:
    """They have no verdict, with the reason; the run ends as with any judge that fails."""
    _install_judge(install, GOOD_REPLY, reply)
    if "wait" in reply:
        give_up_soon(monkeypatch)
        monkeypatch.setattr(foreign_judge, "_TURN_SECONDS", 60)
    settings = make_settings({"judge": {"name": "house"}, "shards": 1})
    result = evaluate(make_rows(3), ["context_relevance"], settings=settings)
    (summary,) = result.manifest.metrics
    assert summary.status == {"judge_failed": 3}
    assert reason in next(iter(summary.unanswered))


def test_a_judge_that_blocks_its_loop_costs_itself(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No coroutine can be interrupted there, so it is asked nothing more; the others judge."""
    _install_judge(install, GOOD_REPLY, "threading.Event().wait()")
    give_up_soon(monkeypatch)
    monkeypatch.setattr(event_loop, "_PARTING_SECONDS", 0.2)
    house = {"name": "house"}
    panel = make_settings({"judges": [house, "lexical"], "shards": 1})
    result = evaluate(make_rows(3), ["context_relevance"], settings=panel)
    assert result.manifest.metrics[0].scored == 3
    assert any("has blocked its event loop" in text for text in result.manifest.problems)
    with pytest.raises(JudgeRefused, match="has blocked its event loop"):
        evaluate(make_rows(3), ["context_relevance"], settings=make_settings({"judge": house}))


def test_a_judge_without_an_end_to_its_evidence_gives_none(
    install: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is asked for evidence once."""
    _install_judge(install, "return None", "threading.Event().wait()")
    give_up_soon(monkeypatch)
    settings = make_settings({"judge": {"name": "house"}})
    (judge,) = make_judges(settings, Corpus())
    request = Ask(GRADE, {"question": "What?", "context": "That."})
    assert judge.evidence(request) is judge.evidence(request) is None
    assert caplog.text.count("the judge house gave no evidence in 0.2 s") == 1


@pytest.mark.parametrize("close", ["1 / 0", "await asyncio.Event().wait()"])
def test_a_judge_that_does_not_close_ends_no_run(
    install: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    close: str,
) -> None:
    """Its rows are scored then; a warning says what went wrong."""
    _install_judge(install, "pass", close)
    give_up_soon(monkeypatch, closing=True)
    settings = make_settings({"judge": {"name": "house"}, "shards": 1})
    result = evaluate(make_rows(3), ["context_relevance"], settings=settings)
    assert result.manifest.metrics[0].scored == 3
    assert "the judge house cannot be closed" in caplog.text


@pytest.mark.parametrize("remote", ["", ", remote=True"])
@pytest.mark.parametrize(
    ("make", "reason"),
    [("1 / 0", "ZeroDivisionError"), ("threading.Event().wait()", "took over 0.2 s")],
)
def test_a_judge_that_cannot_be_made_costs_itself(
    install: Callable[..., None], make: str, reason: str, remote: str
) -> None:
    """The others of a panel judge; alone it is refused with the reason."""
    _install_judge(install, "House(judge.mood)", make, "sample={}", f"sample={{}}{remote}")
    house = {"name": "house"} | ({"deadline_seconds": 0.2} if "wait" in make else {})
    panel = make_settings({"judges": [house, "lexical"], "shards": 1})
    result = evaluate(make_rows(3), ["context_relevance"], settings=panel)
    (summary,) = result.manifest.metrics
    assert summary.scored == 3
    assert any(reason in problem for problem in result.manifest.problems)
    with pytest.raises(JudgeRefused, match=reason):
        evaluate(make_rows(3), ["context_relevance"], settings=make_settings({"judge": house}))


class JudgeOfOwnProtocol(Handler):
    """Answers `POST /judge`: at first that it is busy, then a grade with a number of tokens."""

    statuses: list[int]
    asked: list[tuple[str, str, str]]
    read: Any = 7

    def take(self) -> None:
        """Note the path, the key and the task."""
        task = json.loads(self.body())["task"]
        self.asked.append((self.path, self.headers["Authorization"], task))
        answer = {"said": '{"grade": 2}', "read": self.read}
        self.answer(self.statuses.pop() if self.statuses else 200, json.dumps(answer).encode())


@pytest.mark.process
def test_a_remote_judge_of_another_package_is_retried_and_passes(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It imports `Endpoint` from the root alone: retries, the key and the path are from there."""
    install(JUDGES.group, "remote", REMOTE, "remote")
    check_judge(judge_kind("remote"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    asked: list[tuple[str, str, str]] = []
    with serving(JudgeOfOwnProtocol, statuses=[503], asked=asked) as url:
        judge = {"name": "remote", "base_url": url, "model": "m"}
        settings = make_settings({"judge": judge, "shards": 1})
        result = evaluate(make_rows(1), ["context_relevance"], settings=settings)
    (summary,) = result.manifest.metrics
    usage = result.manifest.usage_by_judge["remote"]
    assert summary.mean == 1.0
    assert usage.failures == {"server_error": 1}
    assert usage.prompt_tokens == 7 * (len(asked) - 1)
    assert {(path, key) for path, key, _ in asked} == {("/judge", "Bearer sk-1")}


@pytest.mark.process
@pytest.mark.parametrize("read", [-1, "many"])
def test_made_up_tokens_of_a_remote_judge_are_estimated(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch, read: object
) -> None:
    """They fail no reply: as without a number, the texts are measured."""
    install(JUDGES.group, "remote", REMOTE, "remote")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(JudgeOfOwnProtocol, statuses=[], asked=[], read=read) as url:
        judge = {"name": "remote", "base_url": url, "model": "m"}
        settings = make_settings({"judge": judge, "shards": 1})
        result = evaluate(make_rows(1), ["context_relevance"], settings=settings)
    assert result.manifest.metrics[0].mean == 1.0
    usage = result.manifest.usage_by_judge["remote"]
    assert usage.prompt_tokens == usage.unknown_prompt_tokens > 0


@pytest.mark.process
def test_a_rejection_of_every_request_of_a_remote_judge_has_its_reason(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a bundled judge."""
    install(JUDGES.group, "remote", REMOTE, "remote")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(JudgeOfOwnProtocol, statuses=[400] * 9, asked=[]) as url:
        judge = {"name": "remote", "base_url": url, "model": "m"}
        settings = make_settings({"judge": judge, "shards": 1})
        result = evaluate(make_rows(1), ["context_relevance"], settings=settings)
    (summary,) = result.manifest.metrics
    assert summary.status == {"judge_failed": 1}
    assert "the judge answered 400" in next(iter(summary.unanswered))


@pytest.mark.process
def test_a_budget_binds_a_remote_judge_of_another_package(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked on a loop of its own, and each attempt counts: replies that do not fit are asked
    for again, and the budget ends that.
    """
    install(JUDGES.group, "remote", REMOTE, "remote")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    asked: list[tuple[str, str, str]] = []
    with serving(JudgeOfOwnProtocol, statuses=[], asked=asked) as url:
        judge = {"name": "remote", "base_url": url, "model": "m"}
        budget = {"max_requests": 20}
        settings = make_settings({"judge": judge, "shards": 2, "budget": budget})
        evaluate(make_rows(6), ["context_relevance", "context_recall"], settings=settings)
    assert len(asked) == 20


def test_a_remote_judge_without_an_address_sends_its_key_to_nobody(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a refusal it would go to OpenAI."""
    install(JUDGES.group, "remote", REMOTE, "remote")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with pytest.raises(JudgeRefused, match="needs `judge: base_url:`"):
        make_judges(make_settings({"judge": {"name": "remote", "model": "m"}}), Corpus())


def _install_judge(install: Callable[..., None], *parts: str) -> None:
    """Install the judge of a house with pairs of an old and a new part of its source."""
    source = JUDGE
    for old, new in zip(parts[::2], parts[1::2], strict=True):
        assert old in source
        source = source.replace(old, new)
    install(JUDGES.group, "house", source, "house")


def test_a_preset_that_raises_costs_its_records(
    install: Callable[..., None], tmp_path: Path
) -> None:
    """They are in quarantine with the reason."""
    install("ragmetrics.presets", "house", PRESET, "house")
    path = write_jsonl(tmp_path / "log.jsonl", [{"c": "That."}, {"q": "What?", "c": "That."}])
    bad, good = LogSet(*find_logs(str(path)), preset="house").read()
    assert isinstance(bad, Rejected)
    assert bad.reason == "preset house: KeyError('q')"
    assert isinstance(good, LogRow)


def test_a_target_that_raises_waits(install: Callable[..., None]) -> None:
    """Its `make` is no function here: nothing is raised but said."""
    install(TARGETS.group, "house", TARGET, "house")
    settings = make_settings({"write_back": {"house": {"street": "x"}}})
    (problem,) = target_problems(settings, {}).values()
    assert problem.startswith("the target house failed: TypeError")


def test_a_target_that_is_none_waits(install: Callable[..., None]) -> None:
    """`make` forgot to return it."""
    source = TARGET.replace("House, None,", "House, lambda *_: None,")
    install(TARGETS.group, "house", source, "house")
    settings = make_settings({"write_back": {"house": {"street": "x"}}})
    (problem,) = target_problems(settings, {}).values()
    assert problem.startswith("the target house failed: AttributeError")


def test_a_target_without_outcome_confirms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """And one that does not close ends no run."""
    made: Any = SimpleNamespace(
        key="house-1", documents=False, send=lambda batch: None, close=lambda: 1 / 0
    )
    target = GuardedTarget("house", lambda: made)
    with pytest.raises(TargetError, match="the target house gave NoneType, no Outcome"):
        target.send([])
    target.close()
    assert "the target house cannot be closed: ZeroDivisionError" in caplog.text
