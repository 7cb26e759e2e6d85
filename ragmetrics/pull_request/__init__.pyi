from .check_result import (
    CheckResult as CheckResult,
    Conclusion as Conclusion,
    drop_conclusion as drop_conclusion,
    without_result as without_result,
)
from .markdown import (
    COMMENT_LIMIT as COMMENT_LIMIT,
    comparison_result as comparison_result,
    gate_result as gate_result,
)
from .hosts import Host as Host, find_host as find_host
