from .base import Embedder as Embedder, Judge as Judge, fingerprint as fingerprint
from .factory import (
    expect_some as expect_some,
    make_embedder as make_embedder,
    make_judges as make_judges,
    make_member as make_member,
    names_of as names_of,
)
from .client import JudgeClient as JudgeClient, Record as Record, MetricRequest as MetricRequest
from .batch_api import BatchApi as BatchApi, counted as counted, ENDED as ENDED
from .batch_records import (
    BatchRecord as BatchRecord,
    BatchRecords as BatchRecords,
    all_batches as all_batches,
)
from .reply_cache import ReplyCache as ReplyCache, EMBEDDING as EMBEDDING
from .run_limits import (
    before_deadline as before_deadline,
    deadline_at as deadline_at,
    use_deadline as use_deadline,
)
from .embeddings import (
    EmbeddingClient as EmbeddingClient,
    expected_of as expected_of,
    TEXTS_PER_REQUEST as TEXTS_PER_REQUEST,
)
from .lexical_judge import HashedEmbedder as HashedEmbedder
from .transport import find_access as find_access
from .fused_prompt import Fused as Fused, fusible as fusible
from .responses import (
    RetryableError as RetryableError,
    error_of as error_of,
    retry_after as retry_after,
)
from .lexical_judge import EmbeddedJudge as EmbeddedJudge
from .run_limits import MeteredJudge as MeteredJudge
from .prompt_translation import translate as translate
from .quota_sharing import leave_quota as leave_quota
from .replayed import Recorder as Recorder
from .transport import BodyReader as BodyReader, TooLarge as TooLarge, ENCODINGS as ENCODINGS
from .batch_api import make_client as make_client
from .client_base import SingleFlight as SingleFlight
from .run_limits import (
    Spend as Spend,
    SpendLimiter as SpendLimiter,
    budget_in_use as budget_in_use,
    use_budget as use_budget,
)
from .transport import (
    Answer as Answer,
    Dropped as Dropped,
    Unreachable as Unreachable,
    certificates as certificates,
    translate_connection_errors as translate_connection_errors,
    proxy_of as proxy_of,
    read_answer as read_answer,
    CONNECT_SECONDS as CONNECT_SECONDS,
)
from .client_base import UsageCounters as UsageCounters
from .word_frequencies import Corpus as Corpus
