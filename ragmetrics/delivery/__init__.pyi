from .pull_request.check_result import (
    CheckResult as CheckResult,
    drop_conclusion as drop_conclusion,
    without_result as without_result,
)
from .pull_request.markdown import (
    comparison_result as comparison_result,
    gate_result as gate_result,
)
from .pull_request.hosts import (
    find_host as find_host,
)
from .gate_notifications import (
    builds_link as builds_link,
    gate_message as gate_message,
    is_news as is_news,
    notify_failed_gate as notify_failed_gate,
    notify_gate as notify_gate,
)
from .state import (
    AlertStates as AlertStates,
    advance_states as advance_states,
    judge_findings as judge_findings,
)
from .delivery import (
    Delivery as Delivery,
    notify_channels as notify_channels,
    alert_messages as alert_messages,
    dashboard_link as dashboard_link,
    page_link as page_link,
    message_composer as message_composer,
)
from .state_fold import (
    as_if_told as as_if_told,
    folded_from as folded_from,
    load_alerts as load_alerts,
    newest_told as newest_told,
    recorded as recorded,
    recorded_silences as recorded_silences,
    states_after as states_after,
    with_keys_of_today as with_keys_of_today,
)
from .alert_list import (
    Alert as Alert,
    all_alerts as all_alerts,
    find_alert as find_alert,
    open_alerts as open_alerts,
)
from .threads import (
    Threads as Threads,
)
from .dashboard_failure import (
    notify_dashboard_failure as notify_dashboard_failure,
)
from .message_samples import (
    sample_messages as sample_messages,
)
from .channel import (
    ChannelKind as ChannelKind,
    ChannelSettings as ChannelSettings,
    Unconfirmed as Unconfirmed,
    channels as channels,
)
from .outbox import (
    Batches as Batches,
    MessageBatch as MessageBatch,
    known_batches as known_batches,
    load_batches as load_batches,
    given_up as given_up,
    GIVEN_UP as GIVEN_UP,
    LONGEST_DAYS as LONGEST_DAYS,
)
from .write_back.delivery import (
    WriteBackReport as WriteBackReport,
    queue_night as queue_night,
    send_waiting as send_waiting,
    target_problems as target_problems,
)
from .write_back.evaluation_results import (
    EvaluationResult as EvaluationResult,
)
from .write_back.target import (
    BatchRefused as BatchRefused,
    Outcome as Outcome,
    TargetError as TargetError,
    TargetKind as TargetKind,
)
from .write_back.target_client import (
    TargetClient as TargetClient,
)
from .write_back.outbox import (
    WaitingNight as WaitingNight,
    waiting as waiting,
)
