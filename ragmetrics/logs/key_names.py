"""Finds the keys of records that can be fields of a row, by their names and values."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from ragmetrics.logs.exported_values import contexts, plain_fields
from ragmetrics.records import BadRow

# Names of keys, without case and signs: `userinput` is user_input, userInput and "User Input". The
# second list counts where no key has a name of the first. Several keys of one list leave a doubt.
_NAMES: dict[str, tuple[str, str]] = {
    "user_input": (
        "userinput question query querystr userquery userquestion searchquery",
        "input prompt request q messages",
    ),
    "retrieved_contexts": (
        "retrievedcontexts retrievalcontext retrievedcontext contexts retrieveddocuments "
        "retrieveddocs retrievedpassages retrievedchunks retrievalresults sourcedocuments "
        "sourcenodes",
        "context documents docs passages chunks hits matches searchresults results",
    ),
    "response": ("response answer actualoutput generatedanswer", "result output completion"),
    "reference": (
        "reference groundtruth expectedoutput expectedanswer expectedresponse goldanswer "
        "correctanswer referenceanswer idealanswer",
        "",
    ),
    "reference_contexts": ("referencecontexts groundtruthcontexts goldcontexts", ""),
    "retrieved_context_ids": (
        "retrievedcontextids retrieveddocids retrieveddocumentids retrievedids",
        "docids documentids",
    ),
    "reference_context_ids": ("referencecontextids relevantids relevantdocids goldids", ""),
    "timestamp": ("timestamp createdat", "time datetime ts at starttime"),
    "id": ("id requestid rowid", ""),
    "index_build": ("indexbuild indexversion", ""),
    "language": ("language lang", ""),
}
# A golden set has right answers only.
_OF_GOLDEN = {
    "response": ("", ""),
    "reference": (_NAMES["reference"][0], "answer answers expected"),
}

_OF_CONTEXTS = ("context", "chunk", "passage", "document", "docs", "rerank", "retriev")
_TAG_NAME = re.compile(r"[A-Za-z]\w{0,30}")
_FEWEST_OF_A_TAG = 3
"""Records for each value of a tag."""
_ID_LIKE = re.compile(r"[!-~]*")  # ASCII without a space: an id or an address


def candidates(paths: Mapping[str, Sequence[Any]], *, golden: bool = False) -> dict[str, list[str]]:
    """For each field of a row, the paths that have a name and values of the field, the likeliest
    first. Paths with equal values are one. `paths` has the values at each dotted path of records.
    """
    named: dict[str, list[str]] = {}
    for name, lists in (_NAMES | _OF_GOLDEN if golden else _NAMES).items():
        for known in lists:
            some: list[str] = []
            for word in known.split():
                some += [
                    path
                    for path, values in paths.items()
                    if word in (_bare(path), _bare_pair(path))
                    and (name != "id" or "." not in path)
                    and fits(name, values)
                    and not any(paths[path] == paths[other] for other in some)
                ]
            if some:
                named[name] = some
                break
    if "response" in named and "reference" in named:
        named["response"] = [one for one in named["response"] if one not in named["reference"]]
    return {name: some for name, some in named.items() if some}


def other_contexts(paths: Mapping[str, Sequence[Any]], chosen: str) -> list[str]:
    """Other lists of texts or documents that may be what was retrieved, such as reranked chunks."""
    if not chosen or not any(isinstance(value, list) for value in paths[chosen]):
        return []
    known = {word for words in _NAMES["reference_contexts"] for word in words.split()}
    known |= {"context"} if _bare(chosen) == "retrievalcontext" else set()  # DeepEval's ideal one
    return [
        path
        for path, values in paths.items()
        if path != chosen
        and any(word in _bare(path) for word in _OF_CONTEXTS)
        and _bare(path) not in known
        and all(isinstance(value, list) for value in values)
        and fits("retrieved_contexts", values)
        and values != paths[chosen]
    ]


def tag_paths(paths: Mapping[str, Sequence[Any]], used: Collection[str]) -> dict[str, str]:
    """The paths of short texts of which few repeat in all records, by the last key of the path."""
    records = max(map(len, paths.values()), default=0)
    tags: dict[str, str] = {}
    for path, values in paths.items():
        several = {str(value) for value in values if isinstance(value, str | bool)}
        if (
            path not in used
            and all(isinstance(value, str | bool) and len(str(value)) <= 40 for value in values)
            and len(values) == records >= _FEWEST_OF_A_TAG * len(several)
            and len(several) > 1
            and _TAG_NAME.fullmatch(name := path.rpartition(".")[2])
        ):
            tags.setdefault(name, path)
    return tags


def _bare(path: str) -> str:
    """The last key of a path without case and signs."""
    last = path.removesuffix(".0").rpartition(".")[2]
    return "".join(filter(str.isalnum, last)).lower()


def _bare_pair(path: str) -> str:
    """The last two keys of a path as one word: `gold.answer` is goldanswer."""
    before, _, last = path.rpartition(".")
    return _bare(before) + _bare(last) if before else ""


def fits(name: str, values: Sequence[Any]) -> bool:
    """Whether most values can be those of a field."""
    if name == "id" and len({str(value) for value in values}) < len(values):
        return False  # an id of a user or a session
    fit = _FITS.get(name, _is_scalar)
    return 2 * sum(map(fit, values)) > len(values)


def is_question(value: Any) -> bool:
    """Whether a value is a question: a text, or messages with one."""
    if isinstance(value, list):
        question = plain_fields({"user_input": value})["user_input"]
        return isinstance(question, str)
    return isinstance(value, str) and bool(value.strip())


def _is_answer(value: Any) -> bool:
    return isinstance(value, str | list)


def _are_contexts(value: Any) -> bool:
    """A list of texts or documents, and not of ids or addresses; or a text of several words."""
    if isinstance(value, str):
        return " " in value.strip()
    if not isinstance(value, list) or not all(isinstance(item, str | Mapping) for item in value):
        return False
    try:
        texts = contexts(value)["retrieved_contexts"]
    except BadRow:
        return False
    return not texts or not all(map(_ID_LIKE.fullmatch, texts))


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str | int) for item in value)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float | datetime)


_FITS: dict[str, Callable[[Any], bool]] = {
    "user_input": is_question,
    "retrieved_contexts": _are_contexts,
    "response": _is_answer,
    "reference_contexts": _are_contexts,
    "retrieved_context_ids": _is_list,
    "reference_context_ids": _is_list,
}
