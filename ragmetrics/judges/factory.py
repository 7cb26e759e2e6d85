"""Makes judges, the layouts of their prompts, and embedders from the settings.

A panel member without credentials becomes an UnavailableJudge: its cached replies are used, and the
other judges of the panel continue.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from pydantic import SecretStr

from ragmetrics.config import JUDGES, JudgeSettings, Settings, api_key
from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.base import (
    Embedder,
    Judge,
    JudgeParts,
    KnowsLayout,
    Reply,
    find_access,
    only_of,
)
from ragmetrics.judges.foreign_judge import UnmadeJudge, make_foreign
from ragmetrics.judges.learned_judge import LearnedJudge
from ragmetrics.judges.local import MODEL as LOCAL_MODEL, LocalEmbedder
from ragmetrics.judges.row_first import Layout, RowFirst
from ragmetrics.judges.word_frequencies import Corpus
from ragmetrics.records import Ask, LearnedModel, Vector
from ragmetrics.storage import Files, LearnedJudges, open_store

_NO_KEY = SecretStr("none")  # of judges that send no request


def make_judges(
    settings: Settings, corpus: Corpus | None = None, *, stored: bool = False
) -> list[Judge]:
    """The judges of the settings. Raises JudgeRefused if none of them has its key, unless `stored`:
    their replies in the store are all that is asked for.

    They need no `corpus` where only a name or a fingerprint is wanted.
    """
    check_judges(settings)
    judges = [make_member(one, corpus, settings=settings) for one in settings.panel]
    if not stored:
        expect_some(judges)
    return judges


def check_judges(settings: Settings) -> None:
    """Raise SettingsError where other settings are in the way of a judge."""
    for judge in settings.panel:
        judge.kind.check(judge, settings)


def expect_some(judges: Sequence[Judge]) -> None:
    """Raise JudgeRefused if no judge of a panel is available."""
    refused = [one for one in judges if isinstance(one, UnavailableJudge)]
    if len(refused) == len(judges):
        raise refused[0].refusal


def layout_of(chosen: JudgeSettings, judge: Judge | None = None) -> Layout | None:
    """The layout of a judge's prompts. None: instructions first.

    With `prompt_layout: auto`, a recording is replayed in the layout in which `judge` made it.
    """
    if chosen.decides:
        from ragmetrics.judges.decision_layout import DecisionLayout

        return DecisionLayout(rounds=getattr(chosen, "round", False))
    row_first = chosen.begins_with_row
    if chosen.prompt_layout == "auto" and isinstance(judge, KnowsLayout):
        row_first = judge.row_first
    return RowFirst() if row_first else None


def names_of(judges: Sequence[Judge]) -> list[str]:
    """A unique name for each judge of a panel."""
    seen: Counter[str] = Counter()
    names = []
    for judge in judges:
        seen[judge.name] += 1
        times = seen[judge.name]
        names.append(judge.name if times == 1 else f"{judge.name} #{times}")
    return names


def make_member(
    judge: JudgeSettings,
    corpus: Corpus | None = None,
    files: Files | None = None,
    settings: Settings | None = None,
) -> Judge:
    """One judge of a panel; an UnavailableJudge if it lacks its key, or if one of another package
    cannot be made. A fitted judge has its model from `files`, or from the store of the `settings`.
    """
    if files is None and settings and judge.kind.fitted:
        files = open_store(settings)
    try:
        return make_judge(judge, corpus, files)
    except JudgeRefused as error:
        if not (judge.remote or _is_foreign(judge)):
            raise
        return UnavailableJudge(_never_asked(judge, files), error)


def make_judge(
    judge: JudgeSettings, corpus: Corpus | None = None, files: Files | None = None
) -> Judge:
    """One judge. Raises JudgeRefused if it lacks its key or its extra.

    In the store `files` a batch judge records its batches.
    """
    parts = JudgeParts(corpus or Corpus(), files, api_key(judge.api_key_env, os.environ))
    return _made(judge, parts)


def _made(judge: JudgeSettings, parts: JudgeParts) -> Judge:
    if _is_foreign(judge):
        return make_foreign(judge, parts)
    created: Judge = judge.kind.make(judge, parts)
    return created


def _never_asked(judge: JudgeSettings, files: Files | None = None) -> Judge:
    """A judge that is made without its key, for its name and its fingerprint. One of another
    package that cannot be made has only a name.
    """
    try:
        return _made(judge, JudgeParts(Corpus(), files, _NO_KEY))
    except JudgeRefused:
        if not _is_foreign(judge):
            raise
        return UnmadeJudge(judge.name)


def _is_foreign(judge: JudgeSettings) -> bool:
    return judge.kind.name not in JUDGES.bundled_names


def find_learned(judge: JudgeSettings, files: Files) -> LearnedModel | None:
    """The newest learned judge that predicts a judge; None without one of today's features."""
    model = LearnedJudges(files).newest(_never_asked(judge).fingerprint)
    made_alike = model and model.code_version == LearnedJudge.code_version and model.features
    return model if made_alike else None


def make_embedder(
    settings: Settings, corpus: Corpus | None = None, *, stored: bool = False
) -> Embedder:
    """The embedder of the settings, or the default one of the judge.

    Without a key it raises JudgeRefused; with a panel of several judges, and where vectors of the
    store are all that is asked for, it returns an UnavailableEmbedder.
    """
    from ragmetrics.judges.embeddings import OpenAIEmbedder
    from ragmetrics.judges.lexical_judge import HashedEmbedder

    chosen = settings.embedder
    if chosen.hashed:
        return HashedEmbedder(corpus or Corpus())
    followed = [one for one in settings.panel if one.kind.embedder == chosen.name]
    if chosen.local:
        model = followed[0].argument if followed else ""
        return LocalEmbedder(chosen.model or model or LOCAL_MODEL, chosen.threads)
    judge = next(iter(followed), settings.panel[0])
    key = api_key(chosen.api_key_env or judge.api_key_env, os.environ)
    base_url, model = chosen.base_url or judge.base_url, chosen.model or chosen.openai_model
    try:
        return OpenAIEmbedder(find_access(judge, base_url, key), model, judge)
    except JudgeRefused as error:
        if len(settings.panel) == 1 and not stored:
            raise
        never_asked = OpenAIEmbedder(find_access(judge, base_url, _NO_KEY), model, judge)
        return UnavailableEmbedder(never_asked, error)


class UnavailableJudge:
    """Replaces `judge`, which lacks its key, with the same name and fingerprint."""

    def __init__(self, judge: Judge, refusal: JudgeRefused) -> None:
        self.name, self.note = judge.name, judge.note
        self.fingerprint, self.cacheable = judge.fingerprint, judge.cacheable
        self.concurrency, self.only = judge.concurrency, only_of(judge)
        self.refusal = refusal
        self._judge = judge

    async def reply(self, request: Ask, attempt: int) -> Reply:
        """Raises JudgeRefused."""
        raise JudgeRefused(str(self.refusal))

    def evidence(self, request: Ask) -> None:
        """None."""

    async def close(self) -> None:
        """Close the replaced one."""
        await self._judge.close()


class UnavailableEmbedder:
    """Replaces `embedder`, which lacks its key, with the same name and fingerprint."""

    def __init__(self, embedder: Embedder, refusal: JudgeRefused) -> None:
        self.name, self.fingerprint = embedder.name, embedder.fingerprint
        self.concurrency, self.cacheable = embedder.concurrency, embedder.cacheable
        self.refusal = refusal
        self._embedder = embedder

    async def embed(self, text: str) -> Vector:
        """Raises JudgeRefused."""
        raise JudgeRefused(str(self.refusal))

    async def close(self) -> None:
        """Close the replaced one."""
        await self._embedder.close()
