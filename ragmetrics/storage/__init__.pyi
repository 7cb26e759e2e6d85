from .file_systems import (
    CONTENT_TYPES as CONTENT_TYPES,
    FileInfo as FileInfo,
    same_file as same_file,
    temporary_file as temporary_file,
)
from .files import (
    Files as Files,
    open_store as open_store,
)
from .history import (
    Runs as Runs,
    trailing_nights as trailing_nights,
)
from .json_records import (
    collecting_damage as collecting_damage,
    find_record as find_record,
    note_damage as note_damage,
    parse_record as parse_record,
    require_record as require_record,
    save_record as save_record,
    unless_refused as unless_refused,
    AskedWays as AskedWays,
    LearnedJudges as LearnedJudges,
)
from .parts import (
    ROW_SCHEMA as ROW_SCHEMA,
    SCORE_SCHEMA as SCORE_SCHEMA,
    DamagedPart as DamagedPart,
    StoredPart as StoredPart,
    PartWriter as PartWriter,
    row_of as row_of,
    row_record as row_record,
    row_size as row_size,
    score_record as score_record,
    workspace as workspace,
)
from .retry import (
    do_all as do_all,
    expect as expect,
    is_missing as is_missing,
    passing_over as passing_over,
)
from .run_index import (
    RunIndex as RunIndex,
    RUNS as RUNS,
    RowLocation as RowLocation,
    RunRef as RunRef,
    ScoredRow as ScoredRow,
    by_shard as by_shard,
    scored_rows as scored_rows,
)
from .turns import (
    lock as lock,
    taking_turns as taking_turns,
)
