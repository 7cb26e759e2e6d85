from .client import (
    HttpClient as HttpClient,
    CONNECT_SECONDS as CONNECT_SECONDS,
    Unreachable as Unreachable,
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
from .backoff import (
    Backoff as Backoff,
    RetryableError as RetryableError,
)
from .event_loop import (
    LoopThread as LoopThread,
    PerLoop as PerLoop,
    run_coroutine as run_coroutine,
)
