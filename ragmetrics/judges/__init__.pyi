from .base import (
    Embedded as Embedded,
    Embedder as Embedder,
    Judge as Judge,
    JudgeParts as JudgeParts,
    Reply as Reply,
    can_answer as can_answer,
)
from .asking import ask_writer as ask_writer
from .batch_lifecycle import open_batches as open_batches
from .batch_records import batched_requests as batched_requests
from .client import (
    JudgeClient as JudgeClient,
    MetricRequest as MetricRequest,
)
from .client_base import (
    SingleFlight as SingleFlight,
)
from .embeddings import (
    EmbeddingClient as EmbeddingClient,
)
from .endpoint import Endpoint as Endpoint
from .factory import (
    layout_of as layout_of,
    check_judges as check_judges,
    find_learned as find_learned,
    expect_some as expect_some,
    make_embedder as make_embedder,
    make_judges as make_judges,
    make_member as make_member,
    names_of as names_of,
)
from .lexical_judge import (
    LexicalJudge as LexicalJudge,
    HashedEmbedder as HashedEmbedder,
)
from .probe import (
    probe_judge as probe_judge,
)
from .prompt_translation import (
    translate as translate,
)
from .replayed import (
    Recorder as Recorder,
)
from .reply_cache import (
    ReplyCache as ReplyCache,
)
from .spending import (
    Spend as Spend,
    SpendLimiter as SpendLimiter,
    use_budget as use_budget,
)
from .word_frequencies import Corpus as Corpus
from .reply_files import outdated_replies as outdated_replies
from .reply_tables import CachedReply as CachedReply
from .learned_judge import (
    LearnedJudge as LearnedJudge,
)
from .verdict_features import (
    Features as Features,
)
from .verdict_items import (
    levels_of as levels_of,
    top_level as top_level,
)
