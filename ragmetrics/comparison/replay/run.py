"""A replay from golden questions to the log of a build."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from ragmetrics.comparison.replay.checkpoint import ReplayCheckpoint, target_of
from ragmetrics.config import RetrieverSettings, Settings
from ragmetrics.errors import InputError, OverDeadline
from ragmetrics.http import run_coroutine
from ragmetrics.records import ReplayIncomplete, ReplayReport, before_deadline, is_name
from ragmetrics.retriever import (
    NoAnswer,
    Question,
    QuestionSet,
    RetrieverClient,
    digest_of,
    golden_questions,
    line_of,
    open_retriever,
    read_answer,
    together,
)
from ragmetrics.storage import workspace
from ragmetrics.text import shorten

Progress = Callable[[str, int, int], None]

_FORMAT = 1
"""Changes when the rows that a replay writes do."""
_HOW = {  # settings that do not change what a retriever is asked
    "headers_env",
    "concurrency",
    "requests_per_second",
    "timeout_seconds",
    "deadline_seconds",
    "retries",
    "max_failed",
    "max_contexts",
    "max_answer_bytes",
    "variants",
    "lookup",
    "probe",
    "reranker",
}


def run_replay(
    settings: Settings,
    build: str,
    place: str | None = None,
    progress: Progress | None = None,
    *,
    limit: int | None = None,
    again: bool = False,
) -> ReplayReport:
    """Ask the retriever each golden question against the build, and write the log at `place`.

    `place` is a folder or a .jsonl file, and may hold `{build}`; None: `gate: logs:` of the
    settings. After a crash the same call continues with the stored answers. A finished replay is
    found too, unless golden set or retriever settings changed, or `again` is set. `limit` asks only
    the first questions, for a try. `progress` is called at the beginning and after each question,
    on another thread. Questions without an answer at the deadline fail.

    Raises InputError for invalid settings or a place with another log; RetrieverRefused at once
    where no question can be answered; ReplayIncomplete, without a log, where more than
    `max_failed` of the questions failed; StoreError for the place.
    """
    started = time.monotonic()
    retriever = settings.retriever
    if retriever is None:
        raise InputError("a replay needs a retriever: set `retriever:` in the settings")
    if not is_name(build):
        raise InputError(
            f"build {shorten(build)!r}: should be at most 100 letters, digits, dots, dashes and "
            "underscores, the first of them a letter or digit"
        )
    target = target_of(settings, build, place)
    questions = golden_questions(settings, limit)
    digest = _digest(retriever, build, questions)
    state = target.state()
    target.check_free(state)
    done = state.replayed if state and state.digest == digest else None
    if done and not again and target.files.exists(target.log):
        seconds = time.monotonic() - started
        return done.model_copy(update={"asked": 0, "found": done.rows, "seconds": seconds})
    with workspace() as folder:
        client = RetrieverClient(open_retriever(retriever, build), retriever)
        target.begin(digest, state, again=again)
        answers = ReplayCheckpoint(target, digest, questions.asked, folder)
        answers.load()
        run = _Run(settings, retriever, build, questions.asked, client, answers, progress)
        run_coroutine(run.ask_all())
        replayed = run.report(target.uri, questions.unreadable, time.monotonic() - started)
        if run.too_many_failed():
            raise ReplayIncomplete(replayed, retriever.max_failed)
        target.check_free(target.state())
        target.finish(digest, replayed, answers.merge())
        return replayed


class _Run:
    """One running replay."""

    def __init__(
        self,
        settings: Settings,
        retriever: RetrieverSettings,
        build: str,
        questions: Sequence[Question],
        client: RetrieverClient,
        answers: ReplayCheckpoint,
        progress: Progress | None,
    ) -> None:
        self._row_bytes, self._retriever, self._build = settings.limits.row_bytes, retriever, build
        self._questions, self._client, self._answers = questions, client, answers
        self._progress, self._found = progress, len(answers)
        self._failed: Counter[str] = Counter()
        self._examples: dict[str, str] = {}
        self._asked = self._done = 0

    async def ask_all(self) -> None:
        """Ask all missing questions."""
        missing = [question for question in self._questions if question not in self._answers]
        self._show()
        try:
            async with before_deadline():
                # The first question alone: one request is enough to find a wrong configuration.
                await self._work(missing[:1])
                rest = iter(missing[1:])
                count = min(self._retriever.concurrency, len(missing))
                await together([self._work(rest) for _ in range(count)])
        except _TooManyFailed:
            pass
        except OverDeadline as error:
            self._failed["deadline"] += len(missing) - self._done
            self._examples["deadline"] = str(error)
        finally:
            await self._client.close()
            await self._answers.flush()

    def report(self, place: str, unreadable: int, seconds: float) -> ReplayReport:
        """The result of the replay."""
        return ReplayReport(
            build=self._build,
            place=place,
            questions=len(self._questions),
            rows=len(self._answers),
            empty=self._answers.empty,
            failed=dict(self._failed.most_common()),
            examples=self._examples,
            asked=self._asked,
            found=self._found,
            setbacks=dict(self._client.setbacks.most_common()),
            unreadable=unreadable,
            seconds=seconds,
        )

    def too_many_failed(self) -> bool:
        """Whether more questions failed than `max_failed` allows, or all of them."""
        count = len(self._questions)
        return self._failed.total() > min(self._retriever.max_failed * count, count - 1)

    async def _work(self, questions: Iterable[Question]) -> None:
        for question in questions:
            self._asked += 1
            try:
                answer = await self._client.ask(question)
                now = datetime.now(UTC)
                row = read_answer(self._retriever, question, self._build, answer, now)
                line = line_of(row, self._row_bytes)
            except NoAnswer as error:
                self._fail(error)
            else:
                await self._answers.save(question, line, empty=not row.retrieved_contexts)
            self._done += 1
            self._show()

    def _show(self) -> None:
        if self._progress:
            self._progress("asking", self._found + self._done, len(self._questions))

    def _fail(self, error: NoAnswer) -> None:
        if not self.too_many_failed():
            self._failed[error.kind] += 1
            self._examples.setdefault(error.kind, shorten(error))
        if self.too_many_failed():
            raise _TooManyFailed


class _TooManyFailed(Exception):
    """Too many questions failed for a log, so no more are asked."""


def _digest(settings: RetrieverSettings, build: str, questions: QuestionSet) -> str:
    what = settings.model_dump(mode="json", exclude=_HOW)
    if not settings.parameters:  # as in versions without parameters, whose replays go on
        del what["parameters"]
    return digest_of([_FORMAT, build, what, questions.digest])
