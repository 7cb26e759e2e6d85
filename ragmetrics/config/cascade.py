"""Which judges a cascade can have."""

from __future__ import annotations

from collections.abc import Sequence

from ragmetrics.config.judge import JudgeSettings


def check_cascade(judges: Sequence[JudgeSettings]) -> None:
    """Raise ValueError unless the judges, the cheap one first, can be a cascade.

    An earlier judge must show whether it is certain: a reranker by its grade, a language model by
    repeats that agree.
    """
    if len(judges) < 2:
        raise ValueError("aggregate: cascade needs two `judges`, the cheap one first")
    for judge in judges[:-1]:
        if judge.lexical:
            raise ValueError(
                f"aggregate: cascade: the judge {judge.name} costs nothing; to use it first, set "
                "`sample: {draw: active}`, whose means stay valid where it is wrong"
            )
        if judge.reads_prompts and judge.repeats == 1:
            raise ValueError(
                f"aggregate: cascade: the judge {judge.name} needs `repeats: 2` or more, unless it "
                "is the last one: it is certain where its repeats agree"
            )
    if judges[-1].repeats > 1:
        raise ValueError("aggregate: cascade: `repeats` has no effect on the last judge")
