"""What the fake judge says to ragas's own prompts: replies drawn from the prompt's hash.

They are varied rather than sensible, so that whoever reads them like ragas gives ragas's number
and whoever reads them otherwise does not. The same prompt draws anew each time it is put.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

_GRADES = (
    "0",
    "1",
    "2",
    " 2]",
    "The relevance score is 1.",
    "10",
    "Somewhere between 0 and 2",
    "0, as far as the page of 2019 goes",
    "I cannot say.",
)
_FORMS = (
    "{}",
    "  {}\n",
    "```json\n{}\n```",
    "Here it is:\n```json\n{}\n```\nI hope this helps.",
)
_BARE_FORMS = ("{}", "```{}```", "```json\n{}\n```", "\n```\n{}\n```\n")
_NOTHING = ("Insufficient Information.", "insufficient information.", "Insufficient Information")
_INVENTED = "The judge wrote this sentence by itself. It stands nowhere."


class Dice:
    """Choices that the text they are drawn for makes once and for all."""

    def __init__(self, *parts: object) -> None:
        self._seed = repr(parts).encode("utf-8", "surrogatepass")
        self._drawn = 0

    def below(self, limit: int) -> int:
        """A whole number from 0 to the limit, without it."""
        self._drawn += 1
        drawn = hashlib.blake2b(self._seed + b"|%d" % self._drawn, digest_size=4).digest()
        return int.from_bytes(drawn, "big") % limit

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices."""
        return choices[self.below(len(choices))]


def ragas_reply(user: str, number: int) -> str | None:
    """Answer a prompt of ragas for the `number`-th time; None to any other prompt."""
    for beginning, answer in _ANSWERS.items():
        if user.startswith(beginning):
            return answer(user, Dice(user, number))
    return None


def _extraction(user: str, dice: Dice) -> str:
    context = _between(user, "\ncontext: ", "\ncandidate sentences: ")
    kept = [line for line in context.split("\n") if dice.below(3)]
    return dice.pick([*_NOTHING, "", _INVENTED, *["\n".join(kept)] * 4, f"{context} {_INVENTED}"])


def _attribution(user: str, dice: Dice) -> str:
    statements = [
        {"statement": f"Claim {n}.", "reason": "Seen.", "attributed": dice.pick((0, 1, 1, 2))}
        for n in range(dice.below(6))
    ]
    return dice.pick(_BARE_FORMS).replace("{}", json.dumps(statements))


def _generation(user: str, dice: Dice) -> str:
    # How evasive it is depends on the prompt alone, so that all replies to one may agree.
    evasive = Dice(user).pick(("always", "at times", "never", "never"))
    data = json.loads(_between(user, "following input\ninput: ", "\nOutput: "))
    words = data["response"].split() or ["nothing"]
    question = " ".join(dice.pick(words) for _ in range(1 + dice.below(6))) + "?"
    verdict: dict[str, Any] = {
        "question": "" if not dice.below(8) else question,
        "noncommittal": {"always": 1, "never": 0}.get(evasive, dice.below(2)),
    }
    form = dice.pick(_FORMS)
    return form.replace("{}", json.dumps(verdict, ensure_ascii=bool(dice.below(2))))


def _relevance(user: str, dice: Dice) -> str:
    return _GRADES[-1] if not Dice(user).below(6) else dice.pick(_GRADES)


def _between(text: str, start: str, end: str) -> str:
    """What stands between the last `start` and the last `end`."""
    return text.rpartition(end)[0].rpartition(start)[2]


Answer: TypeAlias = Callable[[str, Dice], str]
_ANSWERS: Mapping[str, Answer] = {
    "Please extract relevant sentences from the provided context": _extraction,
    "Given a context, and an answer, analyze each sentence": _attribution,
    "Generate a question for the given answer": _generation,
    "### Instructions\n\nYou are a world class expert designed to evaluate": _relevance,
    "As a specially designed expert to assess the relevance score": _relevance,
}
