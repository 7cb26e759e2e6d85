from .definition import (
    Metric as Metric,
    metric as metric,
    METRICS as METRICS,
    bundled_metrics as bundled_metrics,
    display_name as display_name,
    find_metric as find_metric,
    label_targets as label_targets,
    metrics as metrics,
    prompts_of as prompts_of,
    unit_of as unit_of,
    used_metrics as used_metrics,
)
from .bundled._support import (
    average_precision as average_precision,
    claims as claims,
    Support as Support,
)
from .bundled.context_recall import (
    SUPPORT as SUPPORT,
)
from .bundled.context_relevance import (
    Grade as Grade,
    GRADE as GRADE,
)
from .bundled.context_relevancy import (
    NEEDED as NEEDED,
)
from .bundled.faithfulness import (
    GROUNDED as GROUNDED,
)
from .selection import (
    metric_families as metric_families,
    select as select,
)
from .prompt_overrides import (
    PromptOverrides as PromptOverrides,
    PromptFile as PromptFile,
    as_yaml as as_yaml,
    file_name as file_name,
    find_file as find_file,
    is_tag as is_tag,
    read_folder as read_folder,
    reword as reword,
)
