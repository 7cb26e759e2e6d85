from .comparison import (
    make_comparison as make_comparison,
)
from .sides import (
    ScoredSide as ScoredSide,
    read_nights as read_nights,
    scored_side as scored_side,
)
from .lost_passages import (
    lost_between as lost_between,
)
from .nights import (
    LoadScores as LoadScores,
    compare_with_night_before as compare_with_night_before,
    find_moves as find_moves,
    night_before as night_before,
    question_means as question_means,
    cached_load as cached_load,
)
from .gate.staging import (
    StagedGate as StagedGate,
    find_build_nights as find_build_nights,
    stage_gate as stage_gate,
    gate_run_settings as gate_run_settings,
)
from .gate.decision import (
    decide_gate as decide_gate,
    gate_parts as gate_parts,
    run_gate as run_gate,
)
from .replay.run import (
    run_replay as run_replay,
)
from .gate.build_logs import (
    find_build_log as find_build_log,
    replay_missing as replay_missing,
)
from .changed_questions import (
    moved_contexts as moved_contexts,
)
from .gate.store import (
    save_failed_gate as save_failed_gate,
    find_failed_gate as find_failed_gate,
    load_failed_gates as load_failed_gates,
    build_path as build_path,
    find_serving as find_serving,
    gate_path as gate_path,
    load_compared as load_compared,
    load_gate as load_gate,
    load_gates as load_gates,
    save_gate as save_gate,
    BUILD_PAGES as BUILD_PAGES,
    GATES as GATES,
)
from .whatif_store import (
    load_whatif as load_whatif,
    save_whatif as save_whatif,
)
