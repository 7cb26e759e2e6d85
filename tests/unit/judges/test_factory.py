"""Judges from settings: what is missing is told by the name that the settings have."""

from __future__ import annotations

import pytest

from ragmetrics.config import make_settings
from ragmetrics.errors import JudgeRefused
from ragmetrics.judges.base import find_access


@pytest.mark.parametrize(
    ("name", "told"),
    [("openai", "openai"), ("openai-batch", "openai-batch"), ("lexical", "openai")],
)
def test_a_missing_key_is_that_of_the_judge(
    monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    """Beside a judge on this machine it is that of the embeddings."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(JudgeRefused, match=f"the judge {told} needs a key: set OPENAI_API_KEY"):
        find_access(make_settings({"judge": name}).panel[0], None, None)
