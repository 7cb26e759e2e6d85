from .labels.people_means import with_people as with_people
from .labels.label_file import read_labels as read_labels
from .labels.label_steps import (
    check_labels as check_labels,
    label_report as label_report,
    suggest_labels as suggest_labels,
)
from .labels.label_steps import (
    COLUMNS as COLUMNS,
    label_record as label_record,
)
from .calibration.run import (
    calibrate as calibrate,
    judge_drift_set as judge_drift_set,
    ATTACKED as ATTACKED,
)
from .calibration.canaries import (
    ask_canaries as ask_canaries,
    with_canaries as with_canaries,
)
from .calibration.recorded_verdicts import calibrate_replies as calibrate_replies
from .calibration.store import (
    History as History,
    calibration_drifts as calibration_drifts,
    compare_calibrations as compare_calibrations,
    judge_names as judge_names,
    load_calibrations as load_calibrations,
    load_history as load_history,
    repeats as repeats,
    STEPS as STEPS,
)
from .calibration.judge_level import (
    FixedSets as FixedSets,
    fixed_sets as fixed_sets,
    FEWEST_QUESTIONS as FEWEST_QUESTIONS,
)
from .calibration.learned_training import (
    learn as learn,
    REFIT_AFTER as REFIT_AFTER,
)
