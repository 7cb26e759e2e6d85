from .anchors import find_anchors as find_anchors
from .check import check_golden as check_golden
from .confirmed import (
    Added as Added,
    add_confirmed as add_confirmed,
    read_suggestions as read_suggestions,
    suggestion_record as suggestion_record,
    write_suggestions as write_suggestions,
)
from .golden_file import (
    GoldenRows as GoldenRows,
    read_golden_rows as read_golden_rows,
    write_golden_rows as write_golden_rows,
)
from .passage_search import PassageSearch as PassageSearch
from .passages import (
    Passages as Passages,
    listed_passages as listed_passages,
    night_passages as night_passages,
)
from .new_records import relabelled as relabelled, retired as retired
from .suggestions import suggest_questions as suggest_questions
