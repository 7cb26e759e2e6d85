from .blocks import (
    Header as Header,
    Note as Note,
    Section as Section,
    links as links,
)
from .gate_message import (
    compose_gate as compose_gate,
    compose_failed_gate as compose_failed_gate,
)
from .message import (
    Message as Message,
    Tone as Tone,
)
from .night_message import (
    compose as compose,
)
from .registry import (
    FORMATS as FORMATS,
    Format as Format,
)
