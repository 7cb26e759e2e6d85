from .intervals import Mean as Mean, mean_interval as mean_interval
from .comparisons import Drop as Drop, compare as compare, compare_aligned as compare_aligned
from .night_comparison import (
    Questions as Questions,
    held_against as held_against,
    question_means as question_means,
)
from .standardised import (
    Codes as Codes,
    StratifiedRows as StratifiedRows,
    hardest_mix as hardest_mix,
    like_for_like as like_for_like,
)
from .agreement import (
    alpha_statistic as alpha_statistic,
    confusion as confusion,
    kappa_statistic as kappa_statistic,
    krippendorff_alpha as krippendorff_alpha,
)
from .attribution import (
    Carried as Carried,
    TaggedRows as TaggedRows,
    find_carriers as find_carriers,
)
from .change_point import Change as Change, date_change as date_change
from .change_point_paired import date_change_in_order as date_change_in_order
from .cycles import same_level_chance as same_level_chance, weekly_chance as weekly_chance
from .levels import ALPHA as ALPHA, CONFIDENCE as CONFIDENCE
from .mean_difference import Contrast as Contrast, Numbers as Numbers
from .multiple_testing import adjusted as adjusted
from .night_movement import (
    LevelError as LevelError,
    Step as Step,
    estimate_movement as estimate_movement,
    freedom_of as freedom_of,
    step_between as step_between,
    telling as telling,
    widened as widened,
    with_movement as with_movement,
    FEWEST_STEPS as FEWEST_STEPS,
)
from .power import detectable as detectable, smallest as smallest
from .prediction_powered_mean import (
    allocate as allocate,
    prediction_powered as prediction_powered,
    rows_to_judge as rows_to_judge,
    FEWEST_OF_A_STRATUM as FEWEST_OF_A_STRATUM,
)
from .ranking import (
    auc_statistic as auc_statistic,
    auc_within_statistic as auc_within_statistic,
    spearman_statistic as spearman_statistic,
)
from .reliability_curve import reliability as reliability
from .resampling import (
    Floats as Floats,
    Statistic as Statistic,
    bootstrap_interval as bootstrap_interval,
    bootstrap_intervals as bootstrap_intervals,
    once as once,
    ratio as ratio,
    SEED as SEED,
)
from .strata import Strata as Strata, choose_strata as choose_strata, residuals as residuals
