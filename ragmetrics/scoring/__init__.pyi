from .staging import Staged as Staged, load_corpus as load_corpus, plan as plan, stage as stage
from .part import score_families as score_families, score_part as score_part
from .process_pool import (
    Part as Part,
    WorkerDied as WorkerDied,
    cores as cores,
    score_parts as score_parts,
)
from .summary import (
    MetricScores as MetricScores,
    find_segments as find_segments,
    load_scores as load_scores,
    summarise as summarise,
)
from .run_summary import summarise_run as summarise_run, watched_tags as watched_tags
from .budget.estimate import (
    Estimate as Estimate,
    estimate_run as estimate_run,
    plan_budget as plan_budget,
)
from .budget.plan import BudgetPlan as BudgetPlan, check_prices as check_prices, is_paid as is_paid
from .fingerprint import (
    judge_info as judge_info,
    metric_fingerprint as metric_fingerprint,
    metric_fingerprints as metric_fingerprints,
    priced as priced,
)
from .garbage import collect_seldom as collect_seldom
from .low_segments import worse_segments as worse_segments
from .metric_choice import chosen_metrics as chosen_metrics, scoring_only as scoring_only
from .metric_run import play as play
from .panel import majority as majority
from .reuse import (
    attempt_at as attempt_at,
    lacks_verdicts as lacks_verdicts,
    look_back as look_back,
    staged_runs as staged_runs,
)
from .run_parts import parts as parts
from .sampling.draw import Known as Known, plan_sample as plan_sample, wanted_rows as wanted_rows
from .sampling.plan import SamplePlan as SamplePlan
