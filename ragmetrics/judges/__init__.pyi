from .base import (
    Embedded as Embedded,
    Embedder as Embedder,
    Judge as Judge,
    Reply as Reply,
    fingerprint as fingerprint,
)
from .factory import (
    expect_some as expect_some,
    make_embedder as make_embedder,
    make_judges as make_judges,
    make_member as make_member,
    names_of as names_of,
)
from .client import JudgeClient as JudgeClient, Record as Record, MetricRequest as MetricRequest
from .batch_api import BatchApi as BatchApi, counted as counted, ENDED as ENDED
from .cache.batches import (
    BatchRecord as BatchRecord,
    BatchRecords as BatchRecords,
    all_batches as all_batches,
)
from .cache.judgements import (
    CachedReply as CachedReply,
    ReplyCache as ReplyCache,
    EMBEDDING as EMBEDDING,
)
from .deadline import (
    before_deadline as before_deadline,
    deadline_at as deadline_at,
    use_deadline as use_deadline,
)
from .embedding_client import (
    EmbeddingClient as EmbeddingClient,
    expected_of as expected_of,
    TEXTS_PER_REQUEST as TEXTS_PER_REQUEST,
)
from .embeddings import HashedEmbedder as HashedEmbedder
from .endpoint_config import find_access as find_access
from .fused_prompt import Fused as Fused, fusible as fusible, parts_of as parts_of
from .http_errors import (
    RetryableError as RetryableError,
    error_of as error_of,
    retry_after as retry_after,
)
from .lexical_judge import EmbeddedJudge as EmbeddedJudge
from .metered_judge import MeteredJudge as MeteredJudge
from .prompt_translation import translate as translate
from .quota_sharing import leave_quota as leave_quota
from .replayed import Recorder as Recorder
from .response_body import BodyReader as BodyReader, TooLarge as TooLarge, ENCODINGS as ENCODINGS
from .sdk import make_client as make_client
from .single_flight import SingleFlight as SingleFlight
from .spend_limit import (
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
from .usage_counter import UsageCounters as UsageCounters
from .word_frequencies import Corpus as Corpus
