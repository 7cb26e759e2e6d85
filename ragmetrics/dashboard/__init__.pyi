from .refresh import (
    is_shown as is_shown,
    rebuild_dashboard as rebuild_dashboard,
    refresh_builds as refresh_builds,
    refresh_dashboard as refresh_dashboard,
    shown_now as shown_now,
    write_dashboard as write_dashboard,
    write_pages as write_pages,
)
from .pages.calibration import (
    CALIBRATION_PAGE as CALIBRATION_PAGE,
)
from .cards import (
    detectable as detectable,
)
from .comparison_page import (
    compare_path as compare_path,
    write_comparison as write_comparison,
)
from .costs import (
    money as money,
    money_text as money_text,
    budget_text as budget_text,
    cached_text as cached_text,
    certain_text as certain_text,
    cost_lines as cost_lines,
    limits_text as limits_text,
    active_text as active_text,
    narrowed_text as narrowed_text,
    sample_cost_text as sample_cost_text,
    sample_text as sample_text,
    unknown_text as unknown_text,
    usage_text as usage_text,
    too_wide as too_wide,
    was_over as was_over,
)
from .summaries import (
    calibration_markdown as calibration_markdown,
    gate_markdown as gate_markdown,
    night_markdown as night_markdown,
    night_summary as night_summary,
)
from .night_status import (
    by_state as by_state,
    find_night_status as find_night_status,
    rule_state as rule_state,
    LABELS as LABELS,
)
from .prometheus import (
    push_metrics as push_metrics,
)
from .redacting import (
    redacted as redacted,
)
from .templating import (
    render_page as render_page,
)
from .compare_view import (
    comparison_verdict as comparison_verdict,
)
from .labelling_page import (
    write_label_page as write_label_page,
    write_labelling_page as write_labelling_page,
)
from .page import (
    PAGES as PAGES,
    Page as Page,
    Shown as Shown,
)
