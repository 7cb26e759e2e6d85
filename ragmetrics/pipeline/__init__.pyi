from .nightly import (
    Night as Night,
    CoverageShort as CoverageShort,
    NightResult as NightResult,
    run_night as run_night,
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
)
from .compare_sides import (
    compare as compare,
)
from .log_gate import (
    gate_logs as gate_logs,
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
    examine as examine,
)
from .retention import (
    PrunePlan as PrunePlan,
    find_prunable as find_prunable,
)
from .removal import (
    Removed as Removed,
    prune as prune,
)
from .server_conformance import (
    check_channel as check_channel,
    check_judge as check_judge,
    check_target as check_target,
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
    init_settings as init_settings,
)
from .log_check import (
    CheckReport as CheckReport,
    check_logs as check_logs,
)
from .message_preview import (
    Previews as Previews,
)
from .page_conformance import (
    check_page as check_page,
)
from .prefect_events import (
    announce_build as announce_build,
)
