from .intervals import (
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
    hardest_mix as hardest_mix,
    like_for_like as like_for_like,
    Strata as Strata,
    choose_strata as choose_strata,
    residuals as residuals,
    FEWEST as FEWEST,
)
from .agreement import (
    alpha_statistic as alpha_statistic,
    confusion as confusion,
    kappa_statistic as kappa_statistic,
    krippendorff_alpha as krippendorff_alpha,
    auc_statistic as auc_statistic,
    auc_within_statistic as auc_within_statistic,
    pearson_statistic as pearson_statistic,
    spearman_statistic as spearman_statistic,
    reliability as reliability,
)
from .night_movement import (
    LevelError as LevelError,
    NightStep as NightStep,
    step_between as step_between,
    widen_difference as widen_difference,
    with_movement as with_movement,
)
from .significance import (
    ALPHA as ALPHA,
    CONFIDENCE as CONFIDENCE,
    adjust_p_values as adjust_p_values,
)
from .sign_flip_test import (
    FEWEST_FOR_T as FEWEST_FOR_T,
)
from .t_test import (
    MeanDifference as MeanDifference,
    Numbers as Numbers,
    detectable as detectable,
    error_of as error_of,
    smallest_enough as smallest_enough,
    POWER as POWER,
    paired_contrast as paired_contrast,
    unpaired_contrast as unpaired_contrast,
)
from .prediction_powered_mean import (
    allocate as allocate,
    prediction_powered as prediction_powered,
    row_spread as row_spread,
    rows_to_judge as rows_to_judge,
    FEWEST_OF_A_STRATUM as FEWEST_OF_A_STRATUM,
)
from .resampling import (
    Floats as Floats,
    Statistic as Statistic,
    bootstrap_interval as bootstrap_interval,
    bootstrap_intervals as bootstrap_intervals,
    unweighted as unweighted,
    ratio as ratio,
    SEED as SEED,
)
from .people_estimate import (
    bias_difference as bias_difference,
    ErrorRates as ErrorRates,
    JudgedNight as JudgedNight,
    people_mean as people_mean,
    rogan_gladen as rogan_gladen,
)
from .logistic import (
    fit_logistic as fit_logistic,
    logistic_chance as logistic_chance,
)
from .permutation_test import (
    MOST_QUESTIONS as MOST_QUESTIONS,
    Values as Values,
    NightMeans as NightMeans,
    share_of_deals as share_of_deals,
)
