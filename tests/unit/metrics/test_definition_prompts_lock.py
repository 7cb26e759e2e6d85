"""The lock of prompts: text that was sent under a version number never changes under it.

After raising a prompt's version, or adding a prompt:

    .venv/bin/python tests/unit/metrics/test_definition_prompts_lock.py

which adds what is new to prompts.lock.json and never touches what stands there.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ragmetrics.judges.decision_layout import decision_prompt
from ragmetrics.metrics import metrics
from ragmetrics.records import Prompt

LOCK = Path(__file__).with_name("prompts.lock.json")
REFRESH = f"then run: .venv/bin/python {Path(*Path(__file__).parts[-4:])}"


def prompts() -> list[Prompt]:
    """The prompts of all bundled metrics, by name."""
    forms = [form for one in metrics().values() for form in (one, one.by_decisions())]
    found = {prompt.name: prompt for one in forms for prompt in one.prompts}
    return [found[name] for name in sorted(found)]


def digests() -> dict[str, str]:
    """The digest of each prompt, and of how a decision model is asked for it."""
    asked = {f"{label(one)} as decisions": _decisions(one) for one in prompts() if one.decides}
    return {label(one): one.digest for one in prompts()} | asked


def _decisions(prompt: Prompt) -> str:
    """Changes with the rubric, the questions or the levels."""
    data = prompt.examples[0][0] if prompt.examples else {}
    form = decision_prompt(prompt)
    return hashlib.blake2b(f"{form.digest} {form.text(data)}".encode(), digest_size=12).hexdigest()


def label(prompt: Prompt) -> str:
    """Name and version, as in `grade v1`."""
    return f"{prompt.name} v{prompt.version}"


def locked() -> dict[str, str]:
    """The digests checked in."""
    return dict(json.loads(LOCK.read_text()))


def refresh() -> None:
    """Add the prompts that are not locked yet."""
    now = digests() | locked()
    LOCK.write_text(json.dumps(dict(sorted(now.items())), indent=2) + "\n")


def test_no_prompt_changed_without_a_new_version() -> None:
    """Scores by another text are not comparable, and only the version tells people so."""
    lock = locked()
    changed = [name for name, digest in digests().items() if lock.get(name, digest) != digest]
    assert not changed, f"text or verdict changed: raise the version, {REFRESH}"


def test_every_prompt_is_locked() -> None:
    """A new prompt, or a new version of one, is added to the lock."""
    missing = set(digests()) - set(locked())
    assert not missing, f"not in the lock: if the text is final, {REFRESH}"


def test_no_two_prompts_share_a_name() -> None:
    """A name stands for one text in judgements, recordings and this lock."""
    forms = [form for one in metrics().values() for form in (one, one.by_decisions())]
    named = {(prompt.name, prompt.digest) for one in forms for prompt in one.prompts}
    assert len(named) == len(prompts())


def test_no_version_is_skipped() -> None:
    """Every version up to the present one was locked in its time."""
    lock = locked()
    for prompt in prompts():
        assert all(f"{prompt.name} v{n}" in lock for n in range(1, prompt.version + 1))


if __name__ == "__main__":
    refresh()
