from .blocks import (
    Block as Block,
    Bullets as Bullets,
    Header as Header,
    Links as Links,
    Note as Note,
    Place as Place,
    Quote as Quote,
    Section as Section,
    Table as Table,
    Text as Text,
    bullets as bullets,
    links as links,
    table as table,
    text_of as text_of,
)
from .incident_section import incident_block as incident_block
from .table_layout import columns as columns
from .comparison_result import comparison_report as comparison_report
from .changes_story import (
    comparison_story as comparison_story,
    contribution as contribution,
    gate_story as gate_story,
)
from .gate_message import (
    compose_gate as compose_gate,
    compose_failed_gate as compose_failed_gate,
)
from .display_names import (
    in_display_names as in_display_names,
    with_display_names as with_display_names,
)
from .gate_result import SIGNS as SIGNS, gate_report as gate_report
from .message import (
    Message as Message,
    Tone as Tone,
)
from .night_message import (
    compose as compose,
)
from .story import (
    Link as Link,
    NightStory as NightStory,
    no_link as no_link,
    night_story as night_story,
)
from .registry import (
    FORMATS as FORMATS,
    Format as Format,
)
from .text_format import (
    TextFormat as TextFormat,
    is_web_address as is_web_address,
)
from .users_noticed import answered_notes as answered_notes
