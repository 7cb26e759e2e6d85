"""Groups texts: latent semantic analysis, then k-means.

The number of groups is the one with the best mean silhouette, of 4 to 20. The same texts give the
same groups: all draws have a fixed seed.
Sources: Deerwester et al. 1990; Arthur and Vassilvitskii 2007; Rousseeuw 1987.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = NDArray[np.float64]
Groups: TypeAlias = NDArray[np.intp]
FEWEST, MOST = 4, 20
_DIMENSIONS = 50
_RESTARTS = 10
_STEPS = 20
_SEED = 7
_FEWEST_OF_A_GROUP = 5
_MOST_SILHOUETTE = 1_500
"""Texts that the silhouette is computed of."""


def group_texts(
    weights: Sequence[Mapping[str, float]], words: Sequence[str], count: int | None
) -> Groups:
    """The group of each text. `weights` are those of its words; `count` None: the best number."""
    vectors = _reduced(weights, words)
    if count is not None:
        return _k_means(vectors, min(count, len(vectors)))
    most = min(MOST, len(vectors) // _FEWEST_OF_A_GROUP)
    tried = [_k_means(vectors, k) for k in range(FEWEST, most + 1)]
    if not tried:
        return np.zeros(len(vectors), dtype=np.intp)
    return max(tried, key=lambda groups: _silhouette(vectors, groups))


def _reduced(weights: Sequence[Mapping[str, float]], words: Sequence[str]) -> Vectors:
    """The texts in few dimensions, of length 1."""
    from scipy.sparse.linalg import svds

    smaller = min(len(weights), len(words))
    k = min(_DIMENSIONS, smaller - 1)
    if k < 1:
        return np.ones((len(weights), 1))
    start = np.random.default_rng(_SEED).standard_normal(smaller)
    left, sizes, _ = svds(word_matrix(weights, words), k=k, v0=start)
    vectors = left * sizes
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    normalised: Vectors = vectors / np.where(lengths > 0, lengths, 1.0)
    return normalised


def word_matrix(weights: Sequence[Mapping[str, float]], words: Sequence[str]) -> Any:
    """A row for each text and a column for each word, sparse."""
    from scipy import sparse

    column = {word: number for number, word in enumerate(words)}
    rows = [number for number, own in enumerate(weights) for _ in own]
    columns = [column[word] for own in weights for word in own]
    values = [value for own in weights for value in own.values()]
    shape = (len(weights), max(1, len(words)))
    return sparse.csr_matrix((values, (rows, columns)), shape=shape, dtype=np.float64)


def _k_means(vectors: Vectors, count: int) -> Groups:
    """The groups of the best of several runs of k-means++."""
    from scipy.cluster.vq import kmeans2

    def run(number: int) -> tuple[float, Groups]:
        rng = np.random.default_rng([_SEED, count, number])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty group is no topic
            start = _first_centres(vectors, count, rng, furthest=number == 0)
            centres, groups = kmeans2(vectors, start, iter=_STEPS, minit="matrix")
        return float(np.square(vectors - centres[groups]).sum()), groups.astype(np.intp)

    return min((run(number) for number in range(_RESTARTS)), key=lambda found: found[0])[1]


def _first_centres(
    vectors: Vectors, count: int, rng: np.random.Generator, *, furthest: bool
) -> Vectors:
    """The first centres of k-means++: each next one likely far from those before, or the
    `furthest`.
    """
    chosen = [int(rng.integers(len(vectors)))]
    distances = np.square(vectors - vectors[chosen[0]]).sum(axis=1)
    while len(chosen) < count:
        total = float(distances.sum())
        weights = distances / total if total > 0 else None
        drawn = int(rng.choice(len(vectors), p=weights))
        chosen.append(int(np.argmax(distances)) if furthest else drawn)
        distances = np.minimum(distances, np.square(vectors - vectors[chosen[-1]]).sum(axis=1))
    return vectors[chosen]


def _silhouette(vectors: Vectors, groups: Groups) -> float:
    """The mean silhouette by cosine, of at most so many texts at equal distances."""
    places = np.linspace(0, len(vectors) - 1, min(len(vectors), _MOST_SILHOUETTE)).astype(int)
    own, labels = vectors[places], np.unique(groups[places], return_inverse=True)[1]
    counts = np.bincount(labels)
    distances = 1 - own @ own.T
    sums = np.stack([distances[:, labels == one].sum(axis=1) for one in range(len(counts))], axis=1)
    here = np.arange(len(labels)), labels
    inside = sums[here] / np.maximum(counts[labels] - 1, 1)
    means = sums / counts
    means[here] = np.inf
    outside = means.min(axis=1)
    widths = np.where(counts[labels] > 1, (outside - inside) / np.maximum(outside, inside), 0.0)
    return float(widths.mean())
