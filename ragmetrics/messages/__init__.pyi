from .message import (
    Message as Message,
    Tone as Tone,
)
from .formats.slack_mrkdwn import (
    spans as spans,
    web as web,
)
from .formats.terminal import (
    terminal_text as terminal_text,
)
from .gate_message import (
    compose_gate as compose_gate,
    compose_failed_gate as compose_failed_gate,
)
from .root_cause import (
    explain_root_cause as explain_root_cause,
)
from .block_kit import (
    links as links,
    plain as plain,
    context as context,
    section as section,
)
from .slack import (
    compose as compose,
)
from .formats.generic import (
    without_blocks as without_blocks,
    Form as Form,
    body as body,
    title as title,
)
