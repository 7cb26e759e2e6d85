"""Finds the keys of records that can be fields of a row, by their names and values."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from ragmetrics.logs.exported_values import contexts, moment, plain_fields
from ragmetrics.logs.field_mapping import LIST
from ragmetrics.records import BadRow

# Names of keys, without case and signs: `userinput` is user_input, userInput and "User Input". The
# second list counts where no key has a name of the first. Several keys of one list leave a doubt.
_NAMES: dict[str, tuple[str, str]] = {
    "user_input": (
        "userinput question query querystr querytext questiontext userquery userquestion "
        "searchquery",
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
        "correctanswer referenceanswer idealanswer goldenanswer gold",
        "",
    ),
    "reference_contexts": ("referencecontexts groundtruthcontexts goldcontexts", ""),
    "retrieved_context_ids": (
        "retrievedcontextids retrieveddocids retrieveddocumentids retrievedids",
        "docids documentids chunkids passageids contextids",
    ),
    "reference_context_ids": ("referencecontextids relevantids relevantdocids goldids", ""),
    "timestamp": ("timestamp createdat", "time datetime ts at starttime"),
    "id": ("id requestid rowid", ""),
    "index_build": ("indexbuild indexversion", ""),
    "language": ("language lang", ""),
}
_WORDS: dict[str, tuple[frozenset[str], ...]] = {
    "user_input": (frozenset(["question", "query"]),),
    "response": (frozenset(["answer", "reply", "response", "completion"]),),
    "timestamp": (frozenset(["at", "time", "ts", "timestamp", "date"]),),
    "index_build": (
        frozenset(["index", "kb", "corpus", "collection"]),
        frozenset(["version", "build", "snapshot", "revision", "release"]),
    ),
}
"""Words of keys that no list has, such as `llm_answer` or `kb_version`: a key with one of each set
counts where no key has a name of the lists."""
_OTHER_WORDS = frozenset(
    [
        *("gold", "golden", "expected", "correct", "reference", "ideal", "truth", "true", "label"),
        *("id", "ids", "type", "lang", "language", "model", "score", "embedding", "rating"),
        *("ms", "seconds", "latency", "count", "length", "tokens", "updated", "deleted", "expires"),
    ]
)
"""Words of a key that is about something else: `answer_id`, `expected_answer`, `response_ms`."""
_TEXT_KEYS = (
    *("text", "content", "passage", "chunk", "body", "snippet", "pagecontent", "chunktext"),
    *("context", "paragraph"),
)
_ID_KEYS = (
    *("id", "docid", "documentid", "chunkid", "passageid", "uid", "uuid", "ref", "docref", "key"),
    *("uri", "url", "source"),
)
_SCORE_KEYS = ("score", "similarity", "relevancescore", "rerankscore")
"""Last keys of what each item of a list has."""
# A golden set has right answers only.
_OF_GOLDEN = {
    "response": ("", ""),
    "reference": (_NAMES["reference"][0], "answer answers expected"),
}

_OF_CONTEXTS = ("context", "chunk", "passage", "document", "docs", "rerank", "retriev")
_TAG_NAME = re.compile(r"[A-Za-z]\w{0,30}")
_DAY = re.compile(r"\s*\d{4}-\d\d-\d\d")
_SINCE_2001 = 1e9
_FEWEST_OF_A_TAG = 3
"""Records for each value of a tag."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")
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
    if "retrieved_contexts" not in named and (texts := texts_of_items(paths, known=True)):
        named["retrieved_contexts"] = texts
    if "retrieved_contexts" in named:
        named |= _beside_texts(paths, named["retrieved_contexts"][0])
    for name, words in () if golden else _WORDS.items():
        if name not in named and (some := _worded(name, words, paths)):
            named[name] = some
    if "response" in named and "reference" in named:
        named["response"] = [one for one in named["response"] if one not in named["reference"]]
    return {name: some for name, some in named.items() if some}


def _worded(
    name: str, words: Sequence[frozenset[str]], paths: Mapping[str, Sequence[Any]]
) -> list[str]:
    """The paths whose last key has a word of each set and no word of something else, and whose
    values are not only those of a field by their type."""
    return [
        path
        for path, values in paths.items()
        if LIST not in path
        and all(set(_words(path)) & some for some in words)
        and not set(_words(path)) & _OTHER_WORDS
        and (name != "timestamp" or _words(path)[-1] in words[0])
        and (name not in ("user_input", "response") or are_sentences(values))
        and fits(name, values)
    ]


def _words(path: str) -> list[str]:
    """The words of the last key of a path: `llmAnswer` and `llm_answer` are llm and answer."""
    last = path.rpartition(".")[2]
    return [word.lower() for word in _WORD.findall(last)] or [""]


def are_sentences(values: Sequence[Any]) -> bool:
    """Whether most values are texts of several words."""
    return 2 * sum(isinstance(one, str) and " " in one.strip() for one in values) > len(values)


def texts_of_items(paths: Mapping[str, Sequence[Any]], *, known: bool) -> list[str]:
    """The paths of texts that each item of a list has, such as `hits[].doc.body`; the longest texts
    first. With `known` only those with a name of contexts, and of several those with a usual name
    of a text.
    """
    readable = _lists_of_contexts(paths)
    some = [
        path
        for path, values in paths.items()
        if LIST in path
        and path.partition(LIST)[0] not in readable
        and fits("retrieved_contexts", values)
        and (not known or _is_of_contexts(path))
    ]
    some.sort(key=lambda path: -len(str(paths[path])))
    usual = [path for path in some if _bare(path) in _TEXT_KEYS] if known else []
    return usual or some


def _lists_of_contexts(paths: Mapping[str, Sequence[Any]]) -> set[str]:
    """The lists whose items are documents that can be read as they are."""
    return {
        path
        for path, values in paths.items()
        if LIST not in path
        and any(isinstance(value, list) and value for value in values)
        and fits("retrieved_contexts", values)
    }


def _is_of_contexts(path: str) -> bool:
    """Whether a key of the path has a name of contexts, or the last one that of a passage."""
    names = " ".join(_NAMES["retrieved_contexts"]).split()
    parts = [_bare(part) for part in path.replace("[]", "").split(".")]
    return bool({*parts[:-1]} & {*names}) or parts[-1] in ("passage", "chunk", "pagecontent")


def _beside_texts(paths: Mapping[str, Sequence[Any]], texts: str) -> dict[str, list[str]]:
    """The paths of ids and scores that the items with the texts have."""
    if LIST not in texts:
        return {}
    item = texts.rpartition(LIST)[0] + LIST
    above = texts.rpartition(".")[0] + "."
    fields = {
        "retrieved_context_ids": (_ID_KEYS, _are_ids),
        "retrieved_context_scores": (_SCORE_KEYS, _are_numbers),
    }
    beside: dict[str, list[str]] = {}
    for name, (keys, fit) in fields.items():
        some = [
            path
            for key in keys
            for path in paths
            if path.startswith((above, item))
            and _bare(path) == key
            and all(map(fit, paths[path]))
            and list(map(len, paths[path])) == list(map(len, paths[texts]))
        ]
        beside |= {name: some[:1]} if some else {}
    return beside


def _are_ids(value: Any) -> bool:
    """A list of ids that differ, or an empty one."""
    return _is_list(value) and len({str(item) for item in value}) == len(value)


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) in (int, float) for item in value)


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


def is_time(value: Any) -> bool:
    """A time, or a text or number that is one: seconds or milliseconds since 2001."""
    if isinstance(value, str) and value.strip().isdecimal():
        value = float(value)
    if isinstance(value, str):
        return bool(_DAY.match(value)) and moment(value) is not None
    return isinstance(value, datetime) or (type(value) in (int, float) and value >= _SINCE_2001)


_FITS: dict[str, Callable[[Any], bool]] = {
    "user_input": is_question,
    "retrieved_contexts": _are_contexts,
    "response": _is_answer,
    "reference_contexts": _are_contexts,
    "retrieved_context_ids": _is_list,
    "reference_context_ids": _is_list,
    "timestamp": is_time,
}
