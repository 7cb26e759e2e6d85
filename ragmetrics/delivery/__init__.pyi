from .alert_list import (
    Alert as Alert,
    AlertList as AlertList,
    list_alerts as list_alerts,
    undelivered as undelivered,
)
from .channel import (
    ChannelKind as ChannelKind,
    ChannelSettings as ChannelSettings,
    Unconfirmed as Unconfirmed,
    channels as channels,
)
from .delivery import (
    Delivery as Delivery,
    dashboard_link as dashboard_link,
    night_messages as night_messages,
    notify_channels as notify_channels,
    page_link as page_link,
)
from .gate_notifications import (
    gate_message as gate_message,
    notify_failed_gate as notify_failed_gate,
    notify_gate as notify_gate,
)
from .pull_request.markdown import (
    CheckResult as CheckResult,
    drop_conclusion as drop_conclusion,
)
from .pull_request.markdown import (
    comparison_result as comparison_result,
    gate_result as gate_result,
)
from .state_fold import (
    AlertHistory as AlertHistory,
    alert_history as alert_history,
    load_alerts as load_alerts,
    newest_told as newest_told,
)
from .write_back.delivery import (
    WriteBackReport as WriteBackReport,
    queue_night as queue_night,
    send_waiting as send_waiting,
    target_problems as target_problems,
)
from .write_back.target import (
    BatchRefused as BatchRefused,
    Outcome as Outcome,
    TargetError as TargetError,
    TargetKind as TargetKind,
)
from .dashboard_failure import notify_dashboard_failure as notify_dashboard_failure
from .message_samples import sample_messages as sample_messages
from .pull_request.hosts import find_host as find_host
from .store_records import RECORDS as RECORDS
from .write_back.evaluation_results import EvaluationResult as EvaluationResult
from .write_back.outbox import waiting as waiting
from .write_back.target_client import TargetClient as TargetClient
