from .run import (
    calibrate as calibrate,
    judge_drift_set as judge_drift_set,
    ATTACKED as ATTACKED,
)
from .recorded_verdicts import calibrate_replies as calibrate_replies
from .store import (
    History as History,
    calibration_drifts as calibration_drifts,
    compare_calibrations as compare_calibrations,
    judge_names as judge_names,
    load_calibrations as load_calibrations,
    load_history as load_history,
    repeats as repeats,
    STEPS as STEPS,
)
from .judge_level import (
    FixedSets as FixedSets,
    carried_movement as carried_movement,
    fixed_sets as fixed_sets,
    fresh_share as fresh_share,
    is_of_one_day as is_of_one_day,
    level_error as level_error,
    may_move as may_move,
    moving_share as moving_share,
    newest_movement as newest_movement,
    FEWEST_QUESTIONS as FEWEST_QUESTIONS,
)
from .learned_training import learn as learn, REFIT_AFTER as REFIT_AFTER
