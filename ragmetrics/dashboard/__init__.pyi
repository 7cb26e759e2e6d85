from .refresh import (
    is_shown as is_shown,
    rebuild_dashboard as rebuild_dashboard,
    refresh_builds as refresh_builds,
    refresh_dashboard as refresh_dashboard,
    shown_now as shown_now,
    write_dashboard as write_dashboard,
    write_pages as write_pages,
)
from .answers import (
    comparison_answer as comparison_answer,
    incidents_answer as incidents_answer,
    night_answer as night_answer,
    question_answer as question_answer,
    why_answer as why_answer,
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
    cached_text as cached_text,
    certain_text as certain_text,
    budget_lines as budget_lines,
    cost_lines as cost_lines,
    sample_lines as sample_lines,
    limits_text as limits_text,
    unknown_text as unknown_text,
    usage_text as usage_text,
)
from .summaries import (
    calibration_markdown as calibration_markdown,
    gate_markdown as gate_markdown,
    night_markdown as night_markdown,
    night_summary as night_summary,
)
from .night_status import (
    find_night_status as find_night_status,
    night_line as night_line,
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
from .labelling_page import (
    write_label_page as write_label_page,
    write_labelling_page as write_labelling_page,
)
from .page import (
    PAGES as PAGES,
    Page as Page,
    Shown as Shown,
)
