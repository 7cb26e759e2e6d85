from .row import (
    BadRow as BadRow,
    LogRow as LogRow,
    Rejected as Rejected,
    bad_row as bad_row,
    explain_validation_error as explain_validation_error,
    printable as printable,
    question_key as question_key,
    read_row as read_row,
    EXCERPT as EXCERPT,
    FIELDS as FIELDS,
    MAX_CONTEXTS as MAX_CONTEXTS,
)
from .prompt import (
    Data as Data,
    Lexicon as Lexicon,
    Prompt as Prompt,
    Text as Text,
    dump_json as dump_json,
)
from .request import (
    Answer as Answer,
    Ask as Ask,
    Embed as Embed,
    Request as Request,
    Steps as Steps,
    Vector as Vector,
    ask as ask,
    ask_each as ask_each,
    ask_times as ask_times,
    embed as embed,
    embed_each as embed_each,
)
from .score import Score as Score, Status as Status, UNSETTLED as UNSETTLED
from .json_schema import strict_schema as strict_schema
from .summary import (
    JudgeSummary as JudgeSummary,
    SampledMean as SampledMean,
    Segment as Segment,
    Summary as Summary,
)
from .finding import (
    Escalation as Escalation,
    Finding as Finding,
    FindingKind as FindingKind,
    Level as Level,
    Notification as Notification,
    State as State,
    Transition as Transition,
)
from .manifest import (
    BrokenFile as BrokenFile,
    BudgetReport as BudgetReport,
    JudgeInfo as JudgeInfo,
    SpendLimits as SpendLimits,
    Manifest as Manifest,
    SampleReport as SampleReport,
    Source as Source,
    WorstRow as WorstRow,
    EMBEDDINGS as EMBEDDINGS,
)
from .base import Record as Record
from .calibration import (
    Agreement as Agreement,
    AttackName as AttackName,
    AttackResult as AttackResult,
    Calibration as Calibration,
    Confusion as Confusion,
    Drift as Drift,
    Figure as Figure,
    FigureName as FigureName,
    GoldRank as GoldRank,
    MetricCalibration as MetricCalibration,
    MetricDrift as MetricDrift,
    ReliabilityBin as ReliabilityBin,
    DriftUnknown as DriftUnknown,
    calibrations_json as calibrations_json,
    ATTACK_WORDS as ATTACK_WORDS,
    DRIFT_VERSION as DRIFT_VERSION,
    FIGURES as FIGURES,
)
from .change_texts import (
    compared_words as compared_words,
    drop_text as drop_text,
    drop_words as drop_words,
    unwatched_drop_story as unwatched_drop_story,
    unwatched_drop_text as unwatched_drop_text,
    mix_text as mix_text,
    movement_text as movement_text,
    over_questions as over_questions,
    NO_CHANGE as NO_CHANGE,
    WEEKDAY as WEEKDAY,
    WIDE as WIDE,
)
from .changes import (
    ContributorShare as ContributorShare,
    ComparedMeans as ComparedMeans,
    DatedChange as DatedChange,
    UnwatchedDrop as UnwatchedDrop,
    JudgeMovement as JudgeMovement,
    Move as Move,
    BUILDS as BUILDS,
)
from .comparison import (
    MetricChange as MetricChange,
    ComparedSide as ComparedSide,
    Comparison as Comparison,
    UnmatchedQuestion as UnmatchedQuestion,
    MovedContext as MovedContext,
    MovedQuestion as MovedQuestion,
    MovedRow as MovedRow,
    OneSided as OneSided,
    RowValue as RowValue,
)
from .gate import (
    WorseQuestion as WorseQuestion,
    Gate as Gate,
    IndexBuild as IndexBuild,
    MetricVerdict as MetricVerdict,
    FailedGate as FailedGate,
    Verdict as Verdict,
    is_name as is_name,
    make_index_build as make_index_build,
    BUILT as BUILT,
    FAILED_GATES as FAILED_GATES,
    HELD as HELD,
    INCONCLUSIVE as INCONCLUSIVE,
    PASSED as PASSED,
)
from .redaction import (
    hashed as hashed,
    hashed_place as hashed_place,
    hashed_quote as hashed_quote,
    redactions as redactions,
    redact_quotes as redact_quotes,
)
from .replay import (
    ReplayIncomplete as ReplayIncomplete,
    ReplayState as ReplayState,
    ReplayReport as ReplayReport,
    STATE_VERSION as STATE_VERSION,
)
from .silence import Severity as Severity, Silence as Silence, is_more_severe as is_more_severe
from .usage import Usage as Usage
