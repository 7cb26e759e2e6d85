from .base import Embedder as Embedder, Judge as Judge, fingerprint as fingerprint
from .factory import (
    expect_some as expect_some,
    make_embedder as make_embedder,
    make_judges as make_judges,
    make_member as make_member,
    names_of as names_of,
)
from .client import Broker as Broker, Record as Record, Wanted as Wanted
from .batch_api import BatchApi as BatchApi, counted as counted, ENDED as ENDED
from .cache.batches import (
    BatchRecord as BatchRecord,
    BatchRecords as BatchRecords,
    all_batches as all_batches,
)
from .cache.judgements import Judgements as Judgements, EMBEDDING as EMBEDDING
from .deadline import (
    before_deadline as before_deadline,
    deadline_at as deadline_at,
    ending as ending,
)
from .embedding_client import (
    Vectors as Vectors,
    expected_of as expected_of,
    TEXTS_PER_REQUEST as TEXTS_PER_REQUEST,
)
from .embeddings import HashedEmbedder as HashedEmbedder
from .endpoint_config import find_access as find_access
from .fused_prompt import Fused as Fused, fusible as fusible
from .http_errors import Setback as Setback, error_of as error_of, retry_after as retry_after
from .lexical_judge import EmbeddedJudge as EmbeddedJudge
from .metered_judge import Account as Account
from .prompt_translation import translate as translate
from .quota_sharing import depart as depart
from .replayed import Recorder as Recorder
from .response_body import BodyReader as BodyReader, TooLarge as TooLarge, ENCODINGS as ENCODINGS
from .sdk import make_client as make_client
from .single_flight import Once as Once
from .spend_limit import (
    Money as Money,
    Purse as Purse,
    purse_in_use as purse_in_use,
    spending as spending,
)
from .transport import (
    Answer as Answer,
    Dropped as Dropped,
    Unreachable as Unreachable,
    certificates as certificates,
    failures_told as failures_told,
    proxy_of as proxy_of,
    read_answer as read_answer,
    CONNECT_SECONDS as CONNECT_SECONDS,
)
from .usage_counter import Tallies as Tallies
from .word_frequencies import Corpus as Corpus
