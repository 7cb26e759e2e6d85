from .files import (
    FileInfo as FileInfo,
    Files as Files,
    open_store as open_store,
    same_file as same_file,
    CONTENT_TYPES as CONTENT_TYPES,
    SECONDS as SECONDS,
)
from .shards import (
    DamagedPart as DamagedPart,
    PartWriter as PartWriter,
    RunRef as RunRef,
    ScoredRow as ScoredRow,
    copy_part as copy_part,
    is_whole as is_whole,
    question_keys as question_keys,
    read_columns as read_columns,
    read_notes as read_notes,
    read_records as read_records,
    read_row_batches as read_row_batches,
    read_rows as read_rows,
    row_of as row_of,
    row_record as row_record,
    row_size as row_size,
    score_record as score_record,
    undamaged as undamaged,
    workspace as workspace,
    ROW_SCHEMA as ROW_SCHEMA,
    SCORE_SCHEMA as SCORE_SCHEMA,
)
from .history import (
    find_manifest as find_manifest,
    in_full as in_full,
    named_run as named_run,
    nights as nights,
    outlines as outlines,
    ref_of as ref_of,
    run_of as run_of,
    save_manifest as save_manifest,
    trailing as trailing,
)
from .clearing import clear as clear
from .failed_gates import keep as keep, kept_before as kept_before, load_undecided as load_undecided
from .gates import (
    build_path as build_path,
    find_serving as find_serving,
    gate_path as gate_path,
    load_compared as load_compared,
    load_gate as load_gate,
    load_gates as load_gates,
    save_compared as save_compared,
    save_gate as save_gate,
    BUILD_PAGES as BUILD_PAGES,
    GATES as GATES,
)
from .manifests import path_of as path_of, RUNS as RUNS
from .night_selection import speaks as speaks, superseding as superseding
from .parallel import find_all as find_all, side_by_side as side_by_side
from .retry import do_all as do_all, expect as expect, is_missing as is_missing
from .row_lookup import (
    Place as Place,
    by_shard as by_shard,
    records_at as records_at,
    scored_rows as scored_rows,
    scores_at as scores_at,
)
from .run_index import Months as Months
from .tempfiles import scratch as scratch
from .unpacking import FileTooLarge as FileTooLarge, unpacked as unpacked
