from .run import calibrate as calibrate, ATTACKED as ATTACKED
from .recorded_verdicts import calibrate_replies as calibrate_replies
from .history import (
    History as History,
    judge_names as judge_names,
    load_history as load_history,
    repeats as repeats,
    STEPS as STEPS,
)
from .drift import (
    calibration_drifts as calibration_drifts,
    compare_calibrations as compare_calibrations,
)
from .drift_check import judge_drift_set as judge_drift_set
from .judge_level import (
    FixedSets as FixedSets,
    fixed_sets as fixed_sets,
    fresh_share as fresh_share,
    FEWEST_QUESTIONS as FEWEST_QUESTIONS,
)
from .judge_movement import (
    carried_movement as carried_movement,
    is_of_one_day as is_of_one_day,
    level_error as level_error,
    may_move as may_move,
    moving_share as moving_share,
    newest_movement as newest_movement,
)
from .store import load_calibrations as load_calibrations
