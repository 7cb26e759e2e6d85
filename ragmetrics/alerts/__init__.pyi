from .context import Night as Night
from .rules import evaluate as evaluate, SEGMENT_DAYS as SEGMENT_DAYS
from .state import advance as advance, NO_SILENCES as NO_SILENCES
from .delivery import (
    Delivery as Delivery,
    alert as alert,
    alert_messages as alert_messages,
    dashboard_link as dashboard_link,
    load_book as load_book,
    page_link as page_link,
    teller as teller,
)
from .listing import (
    Alert as Alert,
    all_alerts as all_alerts,
    meant as meant,
    open_alerts as open_alerts,
)
from .silencing import (
    alert_id as alert_id,
    silence as silence,
    silences as silences,
    sweep as sweep,
    unsilence as unsilence,
    with_silences as with_silences,
)
from .incident_grouping import Incident as Incident, incidents as incidents
from .alert_store import Book as Book, Message as Message
from .dashboard_failure import tell_unshown as tell_unshown
from .document_ids import IdReader as IdReader
from .escalation import notifications as notifications
from .formats.slack_mrkdwn import spans as spans, web as web
from .formats.terminal import terminal_text as terminal_text
from .gate_message import compose_gate as compose_gate, compose_undecided as compose_undecided
from .judge_movement import with_movements as with_movements
from .message_samples import sample_messages as sample_messages
from .missed_nights import with_missed as with_missed
from .notification_channels import channels as channels, SLACK as SLACK
from .outbox import given_up as given_up, GIVEN_UP as GIVEN_UP, LONGEST_DAYS as LONGEST_DAYS
from .root_cause import explain as explain
from .timeouts import Unconfirmed as Unconfirmed, within as within, LONGEST as LONGEST
from .unwatched_drops import find_falls as find_falls
from .validation import check_rules as check_rules
