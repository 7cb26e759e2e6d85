from .sentence_splitter import (
    SplitCounter as SplitCounter,
    counting_splits as counting_splits,
    normalise as normalise,
    sentences as sentences,
    weight as weight,
)
from .sized_cache import (
    SizedCache as SizedCache,
)
from .numbers import (
    plural as plural,
    chance as chance,
    digits_of as digits_of,
    drop_text as drop_text,
    drop_words as drop_words,
    finite as finite,
    interval as interval,
    number as number,
    share as share,
    short as short,
    short_change as short_change,
    with_unit as with_unit,
    signed as signed,
    signed_interval as signed_interval,
    NO_CHANGE as NO_CHANGE,
    NO_VALUE as NO_VALUE,
    Duration as Duration,
)
from .escaping import (
    clean as clean,
    inert as inert,
    shorten as shorten,
    slug as slug,
    neutralise as neutralise,
    spreadsheet_safe as spreadsheet_safe,
    without_spreadsheet_signs as without_spreadsheet_signs,
)
from .reply_json import (
    is_refusal as is_refusal,
    json_objects as json_objects,
)
from .yaml_reader import (
    load_yaml as load_yaml,
)
from .topic_words import (
    rarity_of as rarity_of,
    weigh as weigh,
    words_of as words_of,
)
