"""Makes text of logs safe for a judge: it stays data.

A log may hold invisible characters, which can hide instructions, and the chat-template tokens by
which self-hosted servers mark turns. A server may treat such a token in the data as its own.
"""

from __future__ import annotations

import re

_INVISIBLE = re.compile(
    "["
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f"  # not the joiners between them: Persian, Hindi and emoji need these
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]+"
)
_BAR = re.compile("<(?=[|\uff5c])|(?<=[|\uff5c])(?=>)")
_NAMED = re.compile(
    r"<(?=/?(?:s|bos|eos|pad|unk|mask|sop|eop|think|thinking|tools?|tool_calls?|tool_response"
    r"|function_call|(?:start|end)_of_[a-z_]+|[a-z_]+_token|unused\d+|extra_id_\d+)>)"
    r"|<(?=</?sys>>)"
    r"|\[(?=/?(?:inst|gmask|system_prompt|available_tools|tool_calls?|tool_results?|tool_content"
    r"|prefix|middle|suffix|img|think|model_settings)\])",
    re.IGNORECASE,
)


def neutralise(text: str) -> str:
    """The text without invisible characters, and with every chat-template token cut by a space.

    `<|im_start|>` becomes `< |im_start| >`, `[INST]` becomes `[ INST]`. Joiners of Persian, of
    Indian scripts and of emoji stay; variation selectors of emoji are removed.
    """
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
    text = _BAR.sub(lambda found: f"{found[0]} ", text)
    return _NAMED.sub(lambda found: f"{found[0]} ", text)
