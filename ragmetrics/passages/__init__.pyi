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
    find_fallen_questions as find_fallen_questions,
)
from .topics.question_texts import (
    PastQuestion as PastQuestion,
    questions_with_reference as questions_with_reference,
    read_questions as read_questions,
)
from .topics.store import (
    topics_of_night as topics_of_night,
)
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
