from .staging import (
    Staged as Staged,
    find_staged as find_staged,
    corpus_of as corpus_of,
    stage_run as stage_run,
)
from .sharding import (
    plan_run as plan_run,
    shard_range as shard_range,
)
from .part import (
    Part as Part,
)
from .run_scorer import (
    score_part as score_part,
    list_parts as list_parts,
    score_parts as score_parts,
)
from .process_pool import (
    WorkerDied as WorkerDied,
    cpu_count as cpu_count,
)
from .cheap_part import (
    score_cheap_parts as score_cheap_parts,
)
from .scores import (
    MetricScores as MetricScores,
    load_scores as load_scores,
    earlier_scores as earlier_scores,
)
from .run_summary import (
    find_segments as find_segments,
    summarise as summarise,
    worse_segments as worse_segments,
    summarise_run as summarise_run,
    watched_tags as watched_tags,
)
from .budget.estimate import (
    Estimate as Estimate,
    estimate_run as estimate_run,
    plan_budget as plan_budget,
)
from .budget.plan import (
    BudgetPlan as BudgetPlan,
)
from .metric_choice import (
    check_prices as check_prices,
    is_paid as is_paid,
    chosen_metrics as chosen_metrics,
    score_families as score_families,
    scoring_only as scoring_only,
    judge_info as judge_info,
    metric_fingerprint as metric_fingerprint,
    metric_fingerprints as metric_fingerprints,
    add_price as add_price,
)
from .cost_plan import (
    CASCADE as CASCADE,
    CostPlan as CostPlan,
    MetricCosts as MetricCosts,
    plan_costs as plan_costs,
)
from .garbage import (
    collect_seldom as collect_seldom,
)
from .metric_run import (
    MetricRun as MetricRun,
    run_metric as run_metric,
)
from .combination import (
    majority as majority,
)
from .reuse import (
    find_attempt as find_attempt,
    lacks_verdicts as lacks_verdicts,
    find_reusable_run as find_reusable_run,
    load_reuse as load_reuse,
    Reuse as Reuse,
    staged_runs as staged_runs,
)
from .sampling.cheap import (
    learned_correlations as learned_correlations,
)
from .sampling.draw import (
    plan_sample as plan_sample,
)
from .sampling.plan import (
    SamplePlan as SamplePlan,
)
from .sampling.sample_size import (
    Known as Known,
    wanted_rows as wanted_rows,
)
from .topic_assignment import (
    Assigner as Assigner,
)
