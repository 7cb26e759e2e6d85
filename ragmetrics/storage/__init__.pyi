from .files import (
    FileInfo as FileInfo,
    Files as Files,
    open_store as open_store,
    same_file as same_file,
    CONTENT_TYPES as CONTENT_TYPES,
    SECONDS as SECONDS,
    remove_file as remove_file,
    find_all as find_all,
    side_by_side as side_by_side,
    temporary_file as temporary_file,
)
from .shards import (
    DamagedPart as DamagedPart,
    PartWriter as PartWriter,
    RunRef as RunRef,
    ScoredRow as ScoredRow,
    copy_part as copy_part,
    is_readable as is_readable,
    is_whole as is_whole,
    question_keys as question_keys,
    read_columns as read_columns,
    read_notes as read_notes,
    read_records as read_records,
    read_row_batches as read_row_batches,
    row_of as row_of,
    row_record as row_record,
    row_size as row_size,
    score_record as score_record,
    reading_part as reading_part,
    workspace as workspace,
    ROW_SCHEMA as ROW_SCHEMA,
    SCORE_SCHEMA as SCORE_SCHEMA,
    RowLocation as RowLocation,
    by_shard as by_shard,
    records_at as records_at,
    scored_rows as scored_rows,
    scores_at as scores_at,
)
from .history import (
    find_manifest as find_manifest,
    in_full as in_full,
    later_nights as later_nights,
    named_run as named_run,
    nights as nights,
    outlines as outlines,
    ref_of as ref_of,
    run_of as run_of,
    runs_of as runs_of,
    save_manifest as save_manifest,
    trailing_nights as trailing_nights,
    is_current as is_current,
    superseding as superseding,
)
from .run_index import (
    path_of as path_of,
    RUNS as RUNS,
    RunIndex as RunIndex,
)
from .retry import (
    do_all as do_all,
    expect as expect,
    is_missing as is_missing,
)
from .unpacking import (
    FileTooLarge as FileTooLarge,
    unpacked as unpacked,
)
from .damage import (
    collecting_damage as collecting_damage,
    note_damage as note_damage,
    unless_refused as unless_refused,
)
from .json_records import (
    find_record as find_record,
    parse_record as parse_record,
    require_record as require_record,
    save_record as save_record,
)
from .learned import (
    all_learned as all_learned,
    copy_learned as copy_learned,
    learned_files as learned_files,
    learned_path as learned_path,
    load_learned as load_learned,
    newest_learned as newest_learned,
    save_learned as save_learned,
)
from .turns import lock as lock, taking_turns as taking_turns
