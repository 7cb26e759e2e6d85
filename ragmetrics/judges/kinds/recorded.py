"""The judge that replays a recording of replies; `PATH#JUDGE` is one judge of a panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragmetrics.config import JudgeKind, JudgeSettings, file_and_judge
from ragmetrics.judges.base import Judge, JudgeParts
from ragmetrics.records import Ask, Prompt, dump_json

if TYPE_CHECKING:
    from ragmetrics.judges.replayed import Recording


class RecordedSettings(JudgeSettings):
    """A recording, which says itself how its judge was asked."""

    @property
    def decides(self) -> bool:
        """True for a recording of a decision model."""
        return self._recording.decides

    @property
    def round(self) -> bool:
        """True for one of a decision model with `round`."""
        return self._recording.rounds

    @property
    def _recording(self) -> Recording:
        """An empty one without the file, which is told when the judge is made."""
        from ragmetrics.judges.replayed import Recording, recording

        path, _ = file_and_judge(self.argument)
        return recording(self.argument) if path.exists() else Recording()

    def answers(self, prompt: Prompt[Any]) -> bool:
        """Whether its judge can answer a prompt."""
        return prompt.decides or not self.decides


def _any(prompt: Prompt[Any]) -> bool:
    """Its settings know what a recording answers."""
    return True


def _make(judge: JudgeSettings, parts: JudgeParts) -> Judge:
    from ragmetrics.judges.replayed import RecordedJudge

    return RecordedJudge(judge.argument)


def _sample_files(request: Ask) -> dict[str, str]:
    reply = {"key": request.key, "prompt": request.prompt.name, "reply": '{"grade": 2}'}
    return {"replies.jsonl": dump_json(reply)}


recorded = JudgeKind(
    "recorded",
    _make,
    RecordedSettings,
    argument="PATH",
    argument_only=True,
    answers=_any,
    is_place=lambda argument: True,
    writes=True,
    sample={"name": "recorded:{folder}/replies.jsonl"},
    sample_files=_sample_files,
)
