from .intervals import (
    Influence as Influence,
    IntervalEstimate as IntervalEstimate,
    Mean as Mean,
    mean_interval as mean_interval,
    share_interval as share_interval,
)
from .comparisons import (
    Drop as Drop,
    compare as compare,
    compare_aligned as compare_aligned,
    QuestionValues as QuestionValues,
    compare_nights as compare_nights,
    question_means as question_means,
    PAIRED_FROM as PAIRED_FROM,
)
from .standardised import (
    Codes as Codes,
    StratifiedRows as StratifiedRows,
    like_for_like as like_for_like,
    Strata as Strata,
    choose_strata as choose_strata,
)
from .krippendorff import (
    alpha_statistic as alpha_statistic,
    krippendorff_alpha as krippendorff_alpha,
)
from .night_movement import (
    LevelError as LevelError,
    NightStep as NightStep,
    step_between as step_between,
    widen_difference as widen_difference,
    with_movement as with_movement,
)
from .judge_offset import OffsetError as OffsetError
from .significance import (
    ALPHA as ALPHA,
    CONFIDENCE as CONFIDENCE,
    adjust_p_values as adjust_p_values,
)
from .sign_flip_test import FEWEST_FOR_T as FEWEST_FOR_T
from .t_test import (
    MeanDifference as MeanDifference,
    Numbers as Numbers,
    detectable as detectable,
    error_of as error_of,
    smallest_enough as smallest_enough,
    POWER as POWER,
)
from .resampling import (
    Statistic as Statistic,
    midranks as midranks,
    ratio as ratio,
    resampled as resampled,
)
from .permutation_test import share_of_deals as share_of_deals
