"""Share of the entities in the reference answer that the retrieved contexts name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from ragmetrics.metrics.definition import metric
from ragmetrics.records import Data, Lexicon, LogRow, Prompt, Score, Size, Steps, ask, ask_each
from ragmetrics.text import normalise

# Articles of English, German, Dutch, French, Spanish, Italian and Portuguese. Both sides lose them,
# so a name that begins with such a word, as "Die Hard", still matches.
_ARTICLE = re.compile(
    r"(?:(?:the|an?|der|die|das|het|de|les?|la|los|las|el|il|gli|os|as)\s|l')\s*(?=\S)"
)
_ONE_FORM = str.maketrans("‘’ʼ`´‐‒–—", "'''''----")
_MEANT = frozenset("#%&@*-")  # punctuation that is part of a name, as in C#, 50 %, -5
_WORD = re.compile(r"[^\W_]+")
_STOP = re.compile(r"[.!?:…\n]")
_PARTICLE = 3  # letters; `It`, `The` and `In` at the beginning of a sentence name nothing
# Scripts written without spaces: each pair of neighbouring characters counts as a word.
_UNSPACED = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿฀-๿຀-໿ក-៿က-႟]")


class Entities(BaseModel):
    """The entities that a text names."""

    entities: list[str]


def _names(text: str) -> Iterator[str]:
    """Words with a digit or a capital; in scripts without capitals, all words."""
    end = 0
    for match in _WORD.finditer(text):
        word, gap, end = match[0], text[end : match.start()], match.end()
        begins = match.start() == len(gap) or _STOP.search(gap)
        if _UNSPACED.search(word):
            yield from (word[i : i + 2] for i in range(max(1, len(word) - 1)))
        elif word[0] != word[0].title():
            if any(sign.isdecimal() for sign in word):
                yield word
        elif word[0] == word[0].lower() or not begins or len(word) > _PARTICLE:
            yield word


def _sizes(data: Data) -> Mapping[str, Size]:
    # A power of two: a server compiles each schema that it has not seen.
    return {"entities": Size(0, 1 << len(data["text"]).bit_length(), Size(0, 200))}


def _baseline(data: Data, lexicon: Lexicon) -> Entities:
    """Baseline: each word that looks like a name or a number."""
    return Entities(entities=list(dict.fromkeys(_names(data["text"]))))


ENTITIES = Prompt(
    name="entities",
    version=2,
    verdict=Entities,
    instruction="""
You list the entities that a text names: persons, peoples, organisations, places, works,
products, events, dates, times, and numbers with their units. List each once, by the fullest
name that the text has for it, in the language of the text and in the base form of the word.
Do not list common nouns, and nothing that the text does not name. Where it names no entity,
reply with an empty list.
""",
    examples=(
        (
            {
                "text": "The Eiffel Tower in Paris was built by the company of Gustave Eiffel. "
                "Eiffel's tower was opened on 15 May 1889 and is 330 metres tall."
            },
            {"entities": ["Eiffel Tower", "Paris", "Gustave Eiffel", "15 May 1889", "330 metres"]},
        ),
        ({"text": "Visitors are asked to wait at the entrance."}, {"entities": []}),
    ),
    baseline=_baseline,
    sizes=_sizes,
)


@metric(
    version=1,
    display="Entity recall",
    prompts=[ENTITIES],
    needs=("retrieved_contexts", "reference"),
    calls="1 for the reference, 1 per distinct context",
)
def context_entity_recall(row: LogRow) -> Steps[Score]:
    """Share of the reference's entities that the retrieved contexts name.

        context_entity_recall = |E(reference) & (E(context_1) | .. | E(context_k))| / |E(reference)|

    E(text) is the set of entities in it, equal whatever their case, width, spaces, surrounding
    punctuation or leading article.

    Range [0, 1], higher is better; one judge call for the reference, then one per distinct
    context. One call on all contexts would be new whenever one of them changes; with one call per
    context a known context is answered from the cache, and short texts give fuller lists. No
    reference, or no entity in it: not applicable, contexts not asked. Nothing retrieved: 0.0, not
    asked. Blank context: not asked. Raises Unanswered if a list cannot be obtained.
    With the lexical judge the entities are the words with a digit or a capital (in German all
    nouns), and in scripts without capitals all words (pairs of characters if there are no
    spaces): the metric is then a recall of words.
    Source: ragas ContextEntityRecall, with normalised entities.
    """
    if not (row.reference or "").strip():
        return Score.not_applicable("no reference answer")
    contexts = [context for context in row.retrieved_contexts if context.strip()]
    if not contexts:
        return Score(0.0, reason="nothing retrieved")
    named = yield from ask(ENTITIES, text=row.reference)
    wanted = _distinct(named)
    if not wanted:
        return Score.not_applicable("no entity in the reference")
    verdicts = yield from ask_each(ENTITIES, [{"text": context} for context in contexts])
    known = {entity for verdict in verdicts for entity in _distinct(verdict)}
    present = [entity for entity in wanted if entity in known]
    missing = [entity for entity in wanted if entity not in known]
    return Score(len(present) / len(wanted), details={"found": present, "missing": missing})


def _distinct(verdict: Entities) -> list[str]:
    """The entities by their identity, each once, in order."""
    return list(dict.fromkeys(filter(None, map(_normal, verdict.entities))))


def _normal(entity: str) -> str:
    """The identity of an entity; empty for one without a letter or digit."""
    bare = _trimmed(normalise(entity).translate(_ONE_FORM))
    article = _ARTICLE.match(bare)
    return _trimmed(bare[article.end() :]) if article else bare


def _trimmed(text: str) -> str:
    """The entity without surrounding punctuation and spaces."""
    if not any(map(str.isalnum, text)):
        return ""
    inner = [i for i, sign in enumerate(text) if not _wraps(sign)]
    return text[inner[0] : inner[-1] + 1]


def _wraps(sign: str) -> bool:
    is_punctuation = unicodedata.category(sign).startswith("P") and sign not in _MEANT
    return is_punctuation or sign.isspace()
