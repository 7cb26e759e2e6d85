from .corpus import read_documents as read_documents
from .document_ids import (
    IdReader as IdReader,
    Ids as Ids,
    SeenIds as SeenIds,
    hashed as hashed,
    pieces as pieces,
)
from .fallen import (
    NeedingQuestion as NeedingQuestion,
    needing_questions_of as needing_questions_of,
)
from .report import (
    EARLIER_NIGHTS as EARLIER_NIGHTS,
    find_lost_passages as find_lost_passages,
    try_lost_passages as try_lost_passages,
)
from .retrievals import VERDICTS as VERDICTS, Run as Run
from .text_match import (
    WORDS as WORDS,
    Shingles as Shingles,
    ordered_shingles_of as ordered_shingles_of,
    shingles_of as shingles_of,
)
