from .nightly import (
    CoverageShort as CoverageShort,
    NightResult as NightResult,
    alert_night as alert_night,
    check_settings as check_settings,
    coverage_short as coverage_short,
    is_published as is_published,
    judge_drift_labels as judge_drift_labels,
    learn_after_night as learn_after_night,
    learns as learns,
    publish_night as publish_night,
    run_night as run_night,
    shortfalls as shortfalls,
    show_night as show_night,
    stage_night as stage_night,
    write_back_night as write_back_night,
    notify_unshown_night as notify_unshown_night,
)
from .night_steps import (
    NightPart as NightPart,
    NightRun as NightRun,
    NightSteps as NightSteps,
)
from .evaluation import (
    Result as Result,
    aevaluate as aevaluate,
    estimate as estimate,
    evaluate as evaluate,
    RowsLost as RowsLost,
    too_many_quarantined as too_many_quarantined,
)
from .compare_sides import (
    compare as compare,
)
from .retriever_variants import (
    whatif as whatif,
)
from .backfill import (
    Backfill as Backfill,
    BackfillShort as BackfillShort,
    PastNight as PastNight,
    check_range as check_range,
    fill as fill,
    run_backfill as run_backfill,
)
from .doctor import (
    Check as Check,
    examine as examine,
)
from .retention import (
    PrunePlan as PrunePlan,
    find_prunable as find_prunable,
    make_retention as make_retention,
)
from .removal import (
    Removed as Removed,
    prune as prune,
)
from .write_back import (
    send_scores as send_scores,
)
from .demo import (
    unpack_demo as unpack_demo,
    NIGHTS as NIGHTS,
)
from .init import (
    InitReport as InitReport,
    Question as Question,
    RuleLimit as RuleLimit,
    init_settings as init_settings,
    take_default as take_default,
)
from .log_check import (
    CheckReport as CheckReport,
    check_logs as check_logs,
)
from .message_preview import (
    of_build as of_build,
    of_night as of_night,
    of_samples as of_samples,
    print_previews as print_previews,
    write_page as write_page,
)
from .prefect_events import (
    built_event as built_event,
    events_api as events_api,
    post_event as post_event,
)
