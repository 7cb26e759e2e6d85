from .blocks import (
    Block as Block,
    Bullets as Bullets,
    Header as Header,
    Links as Links,
    Note as Note,
    Quote as Quote,
    Section as Section,
    Table as Table,
    Text as Text,
    bullets as bullets,
    links as links,
    table as table,
)
from .gate_message import compose_gate as compose_gate, compose_failed_gate as compose_failed_gate
from .message import Message as Message, Tone as Tone
from .night_message import compose as compose
from .registry import FORMATS as FORMATS, Format as Format
from .root_cause import explain_root_cause as explain_root_cause
