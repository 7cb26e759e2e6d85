from .staging import (
    Staged as Staged,
    corpus_of as corpus_of,
    stage_run as stage_run,
)
from .sharding import (
    plan_run as plan_run,
)
from .part import (
    Part as Part,
)
from .run_scorer import (
    score_part as score_part,
    list_parts as list_parts,
    score_parts as score_parts,
)
from .scores import (
    MetricScores as MetricScores,
    load_scores as load_scores,
    earlier_scores as earlier_scores,
    find_segments as find_segments,
    worse_segments as worse_segments,
)
from .run_summary import (
    summarise as summarise,
    summarise_run as summarise_run,
)
from .budget.estimate import (
    Estimate as Estimate,
    estimate_run as estimate_run,
)
from .metric_choice import (
    check_judging as check_judging,
    chosen_metrics as chosen_metrics,
    scoring_only as scoring_only,
    judge_info as judge_info,
    metric_fingerprints as metric_fingerprints,
    add_price as add_price,
)
from .cost_plan import (
    CostPlan as CostPlan,
    plan_costs as plan_costs,
)
from .metric_run import (
    MetricRun as MetricRun,
    run_metric as run_metric,
)
from .combination import (
    majority as majority,
)
from .reuse import (
    lacks_verdicts as lacks_verdicts,
    find_reusable_run as find_reusable_run,
    load_reuse as load_reuse,
    plan_attempt as plan_attempt,
)
from .sampling.sample_size import (
    wanted_rows as wanted_rows,
)
from .topic_assignment import (
    Assigner as Assigner,
)
from .judge_bridge import (
    find_bridge as find_bridge,
    stored_bridge as stored_bridge,
)
from .judged_rows import (
    choose_rows as choose_rows,
    choose_rows_of_night as choose_rows_of_night,
    RUN_FILES as RUN_FILES,
)
from .garbage import (
    collect_seldom as collect_seldom,
)
