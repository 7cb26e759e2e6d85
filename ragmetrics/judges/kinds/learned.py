"""The judge that predicts the verdicts of another one by a model that was fitted to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializeAsAny, model_validator

from ragmetrics.config import JudgeKind, JudgeSettings
from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.base import Judge, JudgeParts

_SAMPLE: Mapping[str, Any] = {"name": "openai", "base_url": "http://127.0.0.1:9/v1"}


class LearnedSettings(JudgeSettings):
    """The learned judge."""

    learned_from: Annotated[
        SerializeAsAny[JudgeSettings] | None, BeforeValidator(JudgeSettings.by_kind)
    ] = Field(None, alias="from")
    """`learned` only: the judge over a network whose verdicts in the store it was fitted on."""

    @property
    def teacher(self) -> JudgeSettings | None:
        """The judge that it predicts."""
        return self.learned_from

    @classmethod
    def taken_from(cls, other: JudgeSettings) -> Mapping[str, Any]:
        """In place of a paid judge it predicts that one."""
        return {"learned_from": other} if other.remote else {}

    @model_validator(mode="after")
    def _learns_from_a_paid_judge(self) -> LearnedSettings:
        if self.learned_from is None or not self.learned_from.remote:
            raise ValueError(
                "the judge `learned` needs `from`: the judge openai or openai-batch with its "
                "settings, whose verdicts are in the store"
            )
        return self


def _make(judge: LearnedSettings, parts: JudgeParts) -> Judge:
    """The newest one that predicts the judge. Raises JudgeRefused if the store has none."""
    from ragmetrics.judges.factory import find_learned
    from ragmetrics.judges.learned_judge import LearnedJudge

    teacher = judge.teacher
    fitted = find_learned(teacher, parts.files) if parts.files and teacher else None
    if fitted is None:
        raise JudgeRefused(
            f"the learned judge is not fitted to {teacher and teacher.model} yet, or by an earlier "
            "version: `ragmetrics learn` fits it to the verdicts in the store"
        )
    return LearnedJudge(fitted, parts.corpus)


def _sample_files(request: object) -> Mapping[str, str]:
    """A model that knows no prompt, so that the baselines answer."""
    from ragmetrics.judges.learned_judge import LearnedJudge
    from ragmetrics.judges.live import chat_fingerprint
    from ragmetrics.records import LearnedModel

    teacher = JudgeSettings(**_SAMPLE)
    model = LearnedModel(
        version=1,
        judge=teacher.model,
        judge_fingerprint=chat_fingerprint(teacher, f"{teacher.base_url}/"),
        code_version=LearnedJudge.code_version,
        features="none",
    )
    return {f"learned/{model.judge_fingerprint}/0001.json": model.model_dump_json()}


learned = JudgeKind(
    "learned",
    _make,
    LearnedSettings,
    lexical=True,
    free=True,
    fitted=True,
    seconds_per_kb=0.01,
    sample={"from": _SAMPLE},
    sample_files=_sample_files,
)
