from .settings import (
    Aggregate as Aggregate,
    MetricChoice as MetricChoice,
    Settings as Settings,
    make_settings as make_settings,
)
from .settings_file import (
    load_settings as load_settings,
    Judged as Judged,
    with_overrides as with_overrides,
)
from .judge_kinds import (
    file_and_judge as file_and_judge,
    JUDGES as JUDGES,
    JudgeKind as JudgeKind,
    is_lexical as is_lexical,
)
from .sections import (
    PRESETS as PRESETS,
    PushSettings as PushSettings,
    RunnerSettings as RunnerSettings,
    GateRule as GateRule,
    TARGETS as TARGETS,
    WriteBackSettings as WriteBackSettings,
    WriteBackStatus as WriteBackStatus,
)
from .judging import (
    EmbeddingSettings as EmbeddingSettings,
    SampleSettings as SampleSettings,
)
from .judge import (
    JudgeSettings as JudgeSettings,
)
from .base import (
    SettingsModel as SettingsModel,
)
from .alerts import (
    AlertSettings as AlertSettings,
    ChannelSettings as ChannelSettings,
    Rule as Rule,
    drop_name as drop_name,
)
from .endpoints import (
    api_key as api_key,
    EnvironmentHeaders as EnvironmentHeaders,
    VariableName as VariableName,
    address as address,
    fill_headers as fill_headers,
    url_of_environment as url_of_environment,
)
from .retriever import (
    RetrieverSettings as RetrieverSettings,
)
from .nights import (
    check_night as check_night,
    check_not_future as check_not_future,
    log_files_of_day as log_files_of_day,
    night_before as night_before,
    night_span as night_span,
)
from .schema import (
    field_docstrings as field_docstrings,
    settings_schema as settings_schema,
)
