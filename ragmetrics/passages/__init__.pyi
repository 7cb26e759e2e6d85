from .golden.anchors import (
    find_anchors as find_anchors,
)
from .golden.check import (
    check_golden as check_golden,
)
from .golden.confirmed import (
    Added as Added,
    add_confirmed as add_confirmed,
    read_suggestions as read_suggestions,
    suggestion_record as suggestion_record,
    write_suggestions as write_suggestions,
)
from .golden.golden_file import (
    GoldenRows as GoldenRows,
    read_golden_rows as read_golden_rows,
    write_golden_rows as write_golden_rows,
)
from .golden.passage_search import (
    PassageSearch as PassageSearch,
)
from .golden.passages import (
    Passages as Passages,
    listed_passages as listed_passages,
    night_passages as night_passages,
)
from .golden.new_records import (
    relabelled as relabelled,
    retired as retired,
)
from .golden.suggestions import (
    suggest_questions as suggest_questions,
)
from .topics.fallen_questions import (
    FallenQuestions as FallenQuestions,
    find_fallen_questions as find_fallen_questions,
)
from .topics.fitting import (
    fit_topics as fit_topics,
    mean_weights as mean_weights,
    telling_words as telling_words,
    word_counts as word_counts,
)
from .topics.question_texts import (
    PastQuestion as PastQuestion,
    questions_with_reference as questions_with_reference,
    read_questions as read_questions,
)
from .topics.store import (
    topics_of_night as topics_of_night,
)
from .diagnosis.corpus import (
    read_documents as read_documents,
)
from .diagnosis.document_ids import (
    IdReader as IdReader,
    Ids as Ids,
    SeenIds as SeenIds,
    hashed as hashed,
    pieces as pieces,
)
from .diagnosis.fallen import (
    NeedingQuestion as NeedingQuestion,
    needing_questions_of as needing_questions_of,
)
from .diagnosis.report import (
    EARLIER_NIGHTS as EARLIER_NIGHTS,
    find_lost_passages as find_lost_passages,
    try_lost_passages as try_lost_passages,
)
from .diagnosis.retrievals import (
    VERDICTS as VERDICTS,
    Run as Run,
)
from .diagnosis.text_match import (
    WORDS as WORDS,
    Shingles as Shingles,
    ordered_shingles_of as ordered_shingles_of,
    shingles_of as shingles_of,
)
