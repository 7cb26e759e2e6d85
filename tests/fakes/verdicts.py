"""What the fake judge says: sensible, deterministic verdicts by plain word overlap.

It knows nothing of ragmetrics: it reads the JSON object of the user turn and answers by the
property names of the verdict's schema.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

DIMENSIONS = 64
SCHEMA_MARK = "Reply with JSON alone: "
AGAIN_MARK = "Your last reply could not be used: "
REST_MARK = "Input, besides question and contexts: "
# Scripts that set no blanks between words are read character by character.
_WORD = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff]|\w+")
_ASKED_WORDS = 10
_STOP_WORDS = """
a an and are as at be by did do does for from had has have how in is it its of on or that the
this to was were what when where which who whom why will with
"""
_STOP = frozenset(_STOP_WORDS.split())
_ENTITY = re.compile(r"(?<![.!?]\s)(?<!^)\b(?:[A-Z]\w*|\d+)\b")
_EVASIVE = re.compile(r"\b(don't|do not|cannot|can't) (know|say|tell|answer)|not sure|unclear")


def reply(system: str, user: str, schema: Json | None) -> str:
    """Answer one request as a model would that follows its instructions.

    Without a schema, in the request or in the system text, it chats.
    """
    schema = schema or _schema_in(system) or _schema_in(user)
    data = _object_in(user)
    if schema is None or data is None:
        return "I am a judge. Give me a schema and an object to judge."
    verdict = {name: _answer(name, part, data) for name, part in schema["properties"].items()}
    return json.dumps(verdict, ensure_ascii=False)


def nonsense(seed: int) -> str:
    """Say something that is no verdict: prose, or an object of another shape."""
    return '{"banana": "purple"}' if seed % 2 else "Colourless green ideas sleep furiously."


def stricter(content: str) -> str:
    """A reply with its grade one lower, if it has one above 0."""
    verdict = json.loads(content)
    if isinstance(verdict.get("grade"), int):
        verdict["grade"] = max(0, verdict["grade"] - 1)
    return json.dumps(verdict, ensure_ascii=False)


def endless(content: str, schema: Json) -> str:
    """A reply whose lists go on for ever, where the schema does not end them."""
    verdict = json.loads(content)
    for name, part in schema["properties"].items():
        if part.get("type") == "array" and "maxItems" not in part:
            verdict[name] = (verdict[name] or [0]) * 5_000
    return json.dumps(verdict, ensure_ascii=False)


def with_grade(content: str, grade: int | None) -> str:
    """A reply with this grade in place of its own, if it has one; None: as it is."""
    if grade is None or '"grade"' not in content:
        return content
    return json.dumps({**json.loads(content), "grade": grade}, ensure_ascii=False)


def embedding(text: str) -> list[float]:
    """A unit vector of the words' hashes; texts that share words point the same way."""
    vector = [0.0] * DIMENSIONS
    for word in _WORD.findall(text.lower()):
        place, sign = _place(word)
        vector[place] += sign
    length = math.hypot(*vector)
    return [value / length for value in vector] if length else [1.0, *vector[1:]]


def overlap(claim: str, passage: str) -> float:
    """Share of the claim's words that the passage holds, in [0, 1]; 0 without a word."""
    asked = _words(claim)
    return len(asked & _words(passage)) / len(asked) if asked else 0.0


def question_of(response: str, number: int) -> str:
    """The `number`-th question that a response answers: short, and about its words.

    Of a long response it takes a few words, each time from another place.
    """
    words = response.strip().rstrip(".!?").split()
    start = (number - 1) * _ASKED_WORDS % max(len(words) - _ASKED_WORDS + 1, 1)
    return f"Question {number}: {' '.join(words[start : start + _ASKED_WORDS])}?"


def _grade(data: Json) -> int:
    share = overlap(data["question"], data["context"])
    return 2 if share >= 0.6 else 1 if share >= 0.3 else 0


def _needed(data: Json) -> list[int]:
    sentences = dict(_numbered(data.get("sentences") or data["contexts"]))
    return [n for n, text in sentences.items() if overlap(data["question"], text) >= 0.4]


def _supported(data: Json) -> list[int]:
    known = "\n".join(text for _, text in _numbered(data["contexts"]))
    claims = data["statements"] if "statements" in data else data["sentences"]
    return [int(overlap(claim, known) >= 0.7) for claim in claims]


def _support(data: Json) -> list[int]:
    known = "\n".join(text for _, text in _numbered(data["contexts"]))
    shares = [overlap(nugget, known) for nugget in data["nuggets"]]
    return [2 if share >= 0.7 else int(share >= 0.4) for share in shares]


def _nuggets(data: Json) -> list[Json]:
    """Each sentence of the reference; the first one is vital."""
    facts = [one for one in re.split(r"(?<=[.!?])\s+", data["reference"].strip()) if one]
    return [
        {"text": fact, "importance": "okay" if number else "vital"}
        for number, fact in enumerate(facts)
    ]


def _statements(data: Json) -> list[list[str]]:
    """Clauses joined by "and" stand alone; an evasive sentence claims nothing."""
    return [
        [] if _EVASIVE.search(sentence.lower()) else sentence.split(" and ")
        for sentence in data["sentences"]
    ]


def _useful(data: Json) -> int:
    texts = (data["question"], data["answer"])
    return int(sum(overlap(text, data["context"]) for text in texts) >= 1)


def _entities(data: Json) -> list[str]:
    """Numbers and capitalised words, but not those that begin a sentence."""
    return list(dict.fromkeys(_ENTITY.findall(data["text"])))


def _questions(data: Json) -> list[str]:
    return [question_of(data["response"], n) for n in range(1, data.get("n", 3) + 1)]


def _noncommittal(data: Json) -> bool:
    return bool(_EVASIVE.search(data["response"].lower()))


def _translated(data: Json) -> list[str]:
    return [f"[{data['language']}] {text}" for text in data["texts"]]


_ANSWERS: Mapping[str, Callable[[Json], Any]] = {
    "grade": _grade,
    "needed": _needed,
    "supported": _supported,
    "support": _support,
    "nuggets": _nuggets,
    "statements": _statements,
    "useful": _useful,
    "entities": _entities,
    "questions": _questions,
    "noncommittal": _noncommittal,
    "translated": _translated,
}
_BLANKS: Mapping[str, Any] = {
    "array": [],
    "boolean": False,
    "integer": 0,
    "number": 0.0,
    "object": {},
    "string": "",
}


def _answer(name: str, schema: Json, data: Json) -> Any:
    """The verdict on one property; of one that is not known, a blank of its type."""
    if name in _ANSWERS:
        return _ANSWERS[name](data)
    return schema["enum"][0] if "enum" in schema else _BLANKS.get(schema.get("type", ""))


def _numbered(texts: Any) -> Iterator[tuple[int, str]]:
    """Sentences with their numbers: as given (`{"1": ...}`), else counted from 1 throughout."""
    flat = [pair for group in texts for pair in _pairs(group)]
    for count, (number, text) in enumerate(flat, 1):
        yield int(number or count), text


def _pairs(group: Any) -> list[tuple[str | None, str]]:
    if isinstance(group, Mapping):
        return list(group.items())
    return [(None, text) for text in ([group] if isinstance(group, str) else group)]


def _schema_in(system: str) -> Json | None:
    """The properties of the form that the instructions give."""
    _, mark, rest = system.partition(SCHEMA_MARK)
    names = re.findall(r'"(\w+)":', rest.split("\n", 1)[0])
    return {"properties": {name: {} for name in names}} if mark else None


def _object_in(user: str) -> Json | None:
    """The data of a request: all of the message, or its first line and what its last one adds."""
    first, *others = user.partition(AGAIN_MARK)[0].rstrip().split("\n")
    try:
        data = json.loads(first)
        more = json.loads(others[-1].partition(REST_MARK)[2]) if others else {}
    except ValueError:
        return None
    return {**data, **more} if isinstance(data, dict) else None


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    """The words that carry meaning, cut to their stems by length."""
    return frozenset(word[:6] for word in _WORD.findall(text.lower()) if word not in _STOP)


@lru_cache(maxsize=65_536)
def _place(word: str) -> tuple[int, float]:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=2).digest()
    return digest[0] % DIMENSIONS, 1.0 if digest[1] % 2 else -1.0
