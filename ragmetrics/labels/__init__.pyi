from .people_means import (
    join_all as join_all,
    label_metrics as label_metrics,
    report_of as report_of,
    with_people as with_people,
)
from .label_file import (
    LabelSet as LabelSet,
    RowLabel as RowLabel,
    read_labels as read_labels,
)
from .labelled_scores import (
    LabelledScore as LabelledScore,
    LabelledScores as LabelledScores,
)
from .row_draw import (
    LabelDraw as LabelDraw,
    draw_rows as draw_rows,
    suggest_rows as suggest_rows,
)
from .suggestion_file import (
    COLUMNS as COLUMNS,
    label_record as label_record,
    write_label_suggestions as write_label_suggestions,
)
