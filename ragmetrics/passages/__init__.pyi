from .golden.confirmed import suggestion_record as suggestion_record
from .golden.nuggets import CutNuggets as CutNuggets, nugget_record as nugget_record
from .golden.golden_file import read_golden_rows as read_golden_rows
from .golden.golden_steps import (
    add_to_golden_set as add_to_golden_set,
    anchor_golden_set as anchor_golden_set,
    check_golden_set as check_golden_set,
    cut_golden_nuggets as cut_golden_nuggets,
    retire_golden_questions as retire_golden_questions,
    suggest_golden_questions as suggest_golden_questions,
)
from .topics.fallen_questions import find_fallen_questions as find_fallen_questions
from .topics.question_texts import (
    PastQuestion as PastQuestion,
    questions_with_reference as questions_with_reference,
    read_questions as read_questions,
)
from .topics.store import topics_of_night as topics_of_night
from .diagnosis.document_ids import (
    IdReader as IdReader,
    Ids as Ids,
    SeenIds as SeenIds,
)
from .diagnosis.fallen import (
    NeedingQuestion as NeedingQuestion,
    needing_questions_of as needing_questions_of,
)
from .diagnosis.report import (
    EARLIER_NIGHTS as EARLIER_NIGHTS,
    try_lost_passages as try_lost_passages,
)
from .diagnosis.retrievals import (
    VERDICTS as VERDICTS,
    Run as Run,
)
