"""The learned judge: predicts the verdicts of another judge by a small fitted model.

A prediction never depends on a verdict of its own question: the model of a fold, to which a
question belongs by its hash, is fitted without the questions of that fold. So predictions may be
used beside the verdicts that the model was fitted on (cross-prediction: Zrnic and Candès 2024).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.lexical_judge import InstantJudge
from ragmetrics.judges.verdict_features import VERSION as FEATURES_VERSION, Features
from ragmetrics.judges.verdict_items import verdict_of
from ragmetrics.judges.word_frequencies import Corpus
from ragmetrics.judges.word_overlap import VERSION as OVERLAP_VERSION, Overlap
from ragmetrics.records import Ask, LearnedModel, fingerprint
from ragmetrics.text import SizedCache

_KEPT = 1_024  # predictions
_MADE_OTHERWISE = (
    "the learned judge was fitted to features that were made otherwise: `ragmetrics learn` fits it "
    "again"
)
Floats = NDArray[np.float64]


class Predictor:
    """The chances of the levels of a request's items."""

    def __init__(self, model: LearnedModel, corpus: Corpus) -> None:
        self._features = Features(corpus, model.embeddings)
        self._made_alike = model.features == self._features.digest
        self._prompts = {prompt.digest: prompt for prompt in model.prompts if prompt.used}
        self._recent: SizedCache[Hashable, Floats] = SizedCache(_KEPT)

    def answers(self, name: str) -> bool:
        """Whether there is a model of a wording of this prompt."""
        return any(prompt.name == name for prompt in self._prompts.values())

    def chances(self, request: Ask) -> Floats | None:
        """P(level >= l) by item and l; None for a prompt without a model, or without items.

        Raises JudgeRefused if the model was fitted to features that were made otherwise.
        """
        model = self._prompts.get(request.prompt.digest)
        if model is None:
            return None
        if not self._made_alike:
            raise JudgeRefused(_MADE_OTHERWISE)
        chances = self._recent.get(request.identity)
        if chances is None:
            features = self._features.of(request)
            chances = model.predicted(request.data["question"], features)
            self._recent.put(request.identity, chances, 1)
        return chances if len(chances) else None


class LearnedJudge(InstantJudge):
    """Gives as many items each level as the judge did whose verdicts it predicts.

    An item has level l where its chance is above the model's `cuts`. The more probable level would
    be given too rarely where it is rare. With a `quantile` an item has the level at that quantile
    of its distribution; the mean of a metric over several of them is the value to be expected.
    Prompts without a model are answered as the lexical judge does.
    """

    name = "learned"
    code_version = 100 * FEATURES_VERSION + OVERLAP_VERSION
    """A stored model with another version was fitted on other features."""

    def __init__(
        self,
        model: LearnedModel,
        corpus: Corpus,
        *,
        predictor: Predictor | None = None,
        quantile: float | None = None,
    ) -> None:
        super().__init__(Overlap(corpus))
        self._predictor = predictor or Predictor(model, corpus)
        self._cuts = {prompt.digest: prompt.cuts for prompt in model.prompts}
        self._quantile = quantile
        self.fingerprint = fingerprint(
            "learned", self.code_version, quantile, model.model_dump_json()
        )
        self.note = (
            f"a learned baseline, fitted on {model.verdicts:,} verdicts of {model.judge}: good for "
            "trends, not for absolute quality"
        )

    @classmethod
    def at_quantiles(
        cls, model: LearnedModel, corpus: Corpus, quantiles: Sequence[float]
    ) -> list[LearnedJudge]:
        """A judge at each quantile; they share their predictions."""
        predictor = Predictor(model, corpus)
        return [cls(model, corpus, predictor=predictor, quantile=own) for own in quantiles]

    def predicts(self, prompt: str) -> bool:
        """Whether there is a model of a wording of this prompt."""
        return self._predictor.answers(prompt)

    def verdict(self, request: Ask) -> BaseModel:
        """The predicted verdict; the baseline's for a prompt without a model."""
        chances = self._predictor.chances(request)
        if chances is None:
            return super().verdict(request)
        cuts = self._cuts[request.prompt.digest]
        least = np.asarray(cuts) if self._quantile is None else 1.0 - self._quantile
        reached = np.minimum.accumulate(chances > least, axis=1)
        return verdict_of(request, reached.sum(axis=1).tolist())

    def evidence(self, request: Ask) -> Sequence[float] | None:
        """The expected level of each item, from 0 to 1; without a model the lexical evidence."""
        chances = self._predictor.chances(request)
        if chances is None:
            return super().evidence(request)
        means: list[float] = chances.mean(axis=1).tolist()
        return means
