from .people_means import (
    join_all as join_all,
    label_metrics as label_metrics,
    report_of as report_of,
    with_people as with_people,
)
from .label_file import (
    UNITS as UNITS,
    LabelSet as LabelSet,
    RowLabel as RowLabel,
    read_labels as read_labels,
)
from .labelled_scores import (
    LabelledScore as LabelledScore,
    LabelledScores as LabelledScores,
    join_scores as join_scores,
)
