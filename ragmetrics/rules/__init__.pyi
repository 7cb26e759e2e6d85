from .context import NightContext as NightContext
from .rules import (
    evaluate_rules as evaluate_rules,
    explain_findings as explain_findings,
    SEGMENT_DAYS as SEGMENT_DAYS,
    for_later_nights as for_later_nights,
    check_rules as check_rules,
)
from .silence_store import (
    silence as silence,
    known_silences as known_silences,
    silences as silences,
    remove_expired_silences as remove_expired_silences,
    unsilence as unsilence,
    with_silences as with_silences,
    is_in_force as is_in_force,
)
from .sides import (
    correct_drop as correct_drop,
    level_of_builds as level_of_builds,
)
from .incident_grouping import (
    Incident as Incident,
    incidents as incidents,
    limit_of as limit_of,
)
from .judge_movement import (
    carried_movement as carried_movement,
    is_of_one_day as is_of_one_day,
    newest_movement as newest_movement,
    with_movements as with_movements,
)
from .rule_check import (
    DEFAULT_RULES as DEFAULT_RULES,
    can_fall as can_fall,
)
from .checks.cannot_fire import (
    Known as Known,
    blind_text as blind_text,
    blind_texts as blind_texts,
    why_it_cannot_fire as why_it_cannot_fire,
)
from .checks.judge_shutdown import (
    shutdown_of as shutdown_of,
    shutdowns_of as shutdowns_of,
)
from .topic_changes import try_topic_changes as try_topic_changes
from .night_check import (
    CHECKS as CHECKS,
    Limit as Limit,
    Tonight as Tonight,
    check as check,
    Check as Check,
    Sample as Sample,
    check_of as check_of,
    suppresses_rules as suppresses_rules,
    used_checks as used_checks,
)
