"""Context relevancy of ragas up to 0.1.10: the same number from the same replies.

The words of the prompt are those of ragas 0.1.10, Apache License 2.0, see NOTICE.
"""

from __future__ import annotations

from ragmetrics.metrics.bundled._ragas import baseline_of, joined
from ragmetrics.metrics.bundled.context_relevancy import NEEDED
from ragmetrics.metrics.definition import metric
from ragmetrics.records import Data, Lexicon, LogRow, Prompt, Score, Steps, Text, ask
from ragmetrics.text import sentences

NONE_FOUND = "Insufficient Information."


def _baseline(data: Data, lexicon: Lexicon) -> Text:
    numbered = {str(n): one for n, one in enumerate(sentences(data["context"], "en"), 1)}
    asked = {"question": data["question"], "contexts": [numbered]}
    needed = baseline_of(NEEDED, asked, lexicon).needed
    return Text(text="\n".join(numbered[str(n)] for n in needed) or NONE_FOUND)


EXTRACTION = Prompt(
    name="ragas_extraction",
    version=1,
    verdict=Text,
    verbatim=True,
    instruction="""\
Please extract relevant sentences from the provided context that is absolutely required answer \
the following question. If no relevant sentences are found, or if you believe the question \
cannot be answered from the given context, return the phrase "Insufficient Information".  While \
extracting candidate sentences you're not allowed to make any changes to sentences from given \
context.

Your actual task:

question: {question}
context: {context}
candidate sentences:\x20
""",
    baseline=_baseline,
)


@metric(version=1, display="Sentences needed (ragas)", prompts=[EXTRACTION], calls="1")
def ragas_context_relevancy(row: LogRow) -> Steps[Score]:
    """Sentences that the judge extracts, per sentence of the contexts (ragas 0.1).

        ragas_context_relevancy = min(|sentences(reply)| / |sentences(contexts)|, 1)

    Range [0, 1], higher is better; one judge call per row. As in ragas 0.1.10 and before,
    contexts are joined by a line break, and English rules split both sides in every language.
    The sentences of the reply are counted, not compared: those that are in no context count
    too, and the score is at most 1. The count is 0 only if the whole reply is
    `insufficient information.` in any case; without the full stop, or with a space at an end,
    it counts as a sentence. An empty reply is 0; an empty question is asked. No sentence in the
    contexts: 0.0, not asked (ragas asks, and gives 0 for any reply).
    Raises Unanswered if there is no reply; any reply is readable.
    Text on which pysbd hangs or loses characters is split by our own rules, and contexts beyond
    8,000 characters in pieces: there the counts may differ from those of ragas.
    Source: ragas 0.1.10, metrics/_context_relevancy.py (removed in 0.1.11).
    """
    context = joined(row)
    total = len(sentences(context, "en"))
    if not total:
        return Score(0.0, reason="no sentence retrieved")
    reply = (yield from ask(EXTRACTION, question=row.user_input, context=context)).text
    # Compared before it is stripped, as in ragas.
    none = reply.lower() == NONE_FOUND.lower()
    extracted = 0 if none else len(sentences(reply.strip(), "en"))
    return Score(min(extracted / total, 1.0), details={"extracted": extracted, "sentences": total})
