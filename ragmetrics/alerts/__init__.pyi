from .context import NightContext as NightContext
from .rules import (
    DEFAULT_RULES as DEFAULT_RULES,
    evaluate_rules as evaluate_rules,
    SEGMENT_DAYS as SEGMENT_DAYS,
    for_later_nights as for_later_nights,
    check_rules as check_rules,
)
from .state import (
    advance_states as advance_states,
    notifications as notifications,
    NO_SILENCES as NO_SILENCES,
)
from .delivery import (
    Delivery as Delivery,
    notify_channels as notify_channels,
    alert_messages as alert_messages,
    dashboard_link as dashboard_link,
    page_link as page_link,
    message_composer as message_composer,
)
from .state_store import load_alerts as load_alerts, repair_state as repair_state
from .state_fold import fold_states as fold_states
from .late_nights import is_late as is_late
from .alert_list import (
    Alert as Alert,
    all_alerts as all_alerts,
    find_alert as find_alert,
    open_alerts as open_alerts,
)
from .alert_store import (
    AlertStore as AlertStore,
    Undelivered as Undelivered,
)
from .message import Message as Message
from .slack_threads import Threads as Threads
from .silence_store import (
    silence as silence,
    silences as silences,
    remove_expired_silences as remove_expired_silences,
    unsilence as unsilence,
    with_silences as with_silences,
)
from .incident_grouping import Incident as Incident, incidents as incidents
from .dashboard_failure import notify_dashboard_failure as notify_dashboard_failure
from .formats.slack_mrkdwn import spans as spans, web as web
from .formats.terminal import terminal_text as terminal_text
from .gate_message import compose_gate as compose_gate, compose_failed_gate as compose_failed_gate
from .judge_movement import with_movements as with_movements
from .message_samples import sample_messages as sample_messages
from .missed_nights import with_missed_nights as with_missed_nights
from .notification_channels import channels as channels, SLACK as SLACK
from .outbox import given_up as given_up, GIVEN_UP as GIVEN_UP, LONGEST_DAYS as LONGEST_DAYS
from .renamed_alerts import with_keys_of_today as with_keys_of_today
from .rule_check import can_fall as can_fall
from .rule_reach import (
    Known as Known,
    blind_text as blind_text,
    blind_texts as blind_texts,
    why_it_cannot_fire as why_it_cannot_fire,
)
from .root_cause import explain_root_cause as explain_root_cause
from .timeouts import (
    Unconfirmed as Unconfirmed,
    with_timeout as with_timeout,
    CHANNEL_TIMEOUT as CHANNEL_TIMEOUT,
)
from .topic_changes import (
    fallen_topic as fallen_topic,
    try_topic_changes as try_topic_changes,
)
from .unwatched_drops import find_unwatched_drops as find_unwatched_drops
