from .client import (
    HttpClient as HttpClient,
    CONNECT_SECONDS as CONNECT_SECONDS,
    Unreachable as Unreachable,
    Backoff as Backoff,
    RetryableError as RetryableError,
)
from .answer import (
    Answer as Answer,
    ENCODINGS as ENCODINGS,
    BadBody as BadBody,
    TooLarge as TooLarge,
    Unpacker as Unpacker,
    Dropped as Dropped,
    error_of as error_of,
    retry_after as retry_after,
    Redactor as Redactor,
    environment_redactor as environment_redactor,
)
from .event_loop import (
    LoopThread as LoopThread,
    PerLoop as PerLoop,
    run_coroutine as run_coroutine,
)
