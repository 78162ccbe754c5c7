"""Text that talks to the model instead of the reader.

Owns the detection only: what a page that gives orders to an assistant means for an answer is decided elsewhere. Never
changes a text. The patterns want an order, not a mention: a chapter about system prompts is not hostile.
"""

import re

ADDRESSES_ASSISTANT = "addresses_assistant"

_MODEL = (
    r"(?:an? )?(?:helpful )?(?:(?:ai|artificial intelligence) (?:language )?(?:models?|assistants?|agents?|chat ?bots?)"
    r"|(?:large )?language models?)"
)
_EARLIER = r"(?:previous|prior|above|earlier|preceding|foregoing|original|system|your)"
_ORDERS = r"(?:instructions?|prompts?|directives?|directions|guidelines|rules|commands|constraints|safeguards)"
_PATTERNS = (
    # "ignore all previous instructions", "forget everything above", "disregard the instructions from the user"
    rf"\b(?:ignore|disregard|forget|override|bypass)(?: (?:all|any|every|the|of|these|those|my)){{0,4}} {_EARLIER}"
    rf"(?: (?:and|or|system|previous|safety|given)){{0,3}} {_ORDERS}\b",
    r"\b(?:ignore|disregard|forget) (?:everything|all|anything) (?:above|before this|you (?:were|have been|know))\b",
    r"\b(?:ignore|disregard) (?:all )?(?:the )?instructions (?:above|before this|from the (?:user|system|developer))\b",
    # "you are an AI language model", "you are now in developer mode", "as an assistant, you must"
    rf"\byou are (?:now )?{_MODEL}\b",
    r"\byou are now (?:in )?(?:dan|developer mode|jailbroken|unrestricted)\b",
    rf"\bas (?:an? (?:helpful )?assistant|{_MODEL}),? you (?:must|should|will|shall|are to)\b",
    # "AI agents reading this", "Attention, AI assistant:"
    rf"\b(?:{_MODEL}|assistants?|llms?) (?:reading|processing|summari[sz]ing|indexing) this\b",
    rf"\b(?:attention|note|message|instructions?|dear|hey|to),? (?:(?:to|for) )?(?:all |any |the )?{_MODEL} ?[:,!]",
    # "do not tell the user", "reveal your system prompt", "your new instructions are"
    r"\b(?:do not|don'?t|never) (?:tell|inform|warn|alert|(?:reveal|mention) (?:this )?to) the (?:user|human)\b",
    r"\b(?:reveal|print|repeat|output|leak|show|disclose) (?:me )?your (?:system|hidden|initial|secret) "
    r"(?:prompt|instructions?)\b",
    r"\byour (?:new|updated|real) (?:system prompt|system instructions?|instructions|task) (?:is|are)\b",
    r"\bbegin (?:new )?(?:system|hidden) (?:prompt|instructions?)\b",
    # markup of chat templates
    r"<\|(?:im_start|im_end|system|start_header_id)\|>|\[/?inst\]|<</?sys>>",
)
# any whitespace may stand where a pattern has a space
_HOSTILE = re.compile("|".join(_PATTERNS).replace(" ", r"\s+").replace(r"\s+?", r"\s*"), re.IGNORECASE)


def flags_of(text: str) -> tuple[str, ...]:
    """The flags that a text earns: `addresses_assistant` when it gives orders to a model."""
    return (ADDRESSES_ASSISTANT,) if _HOSTILE.search(text) else ()
