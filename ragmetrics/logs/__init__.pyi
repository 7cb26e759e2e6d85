from .inputs import (
    date_of as date_of,
    NightInputs as NightInputs,
    days_of as days_of,
    find_inputs as find_inputs,
    log_set as log_set,
    log_sets as log_sets,
    inputs_of as inputs_of,
    in_layout as in_layout,
    overwrites as overwrites,
    SINCE as SINCE,
    UNTIL as UNTIL,
    NUGGETS_OF as NUGGETS_OF,
    GoldenRow as GoldenRow,
    GoldenSet as GoldenSet,
    golden_set as golden_set,
    read_golden as read_golden,
)
from .log_files import (
    LogSet as LogSet,
    ReadCounts as ReadCounts,
    find_logs as find_logs,
    is_among as is_among,
    log_of as log_of,
)
from .night_template import (
    NightPlace as NightPlace,
    night_place as night_place,
)
from .preset import (
    Place as Place,
    Preset as Preset,
    Skipped as Skipped,
    Span as Span,
)
from .preset_rows import interpret as interpret
from .recognition import RecognisedLayout as RecognisedLayout
from .field_mapping import find_path as find_path
from .formats import (
    EVERYTHING as EVERYTHING,
    FORMATS as FORMATS,
)
from .parquet_records import (
    FileTooLarge as FileTooLarge,
    parquet_extent as parquet_extent,
)
from .rows_for_people import write_rows_for_people as write_rows_for_people
