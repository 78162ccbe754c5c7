"""What single models want or refuse in a request."""

import re
from typing import Any
from urllib.parse import urlsplit

from chapterverse.settings import OPENAI_URL

_GEMINI = re.compile(r"gemini-(\d+)?")
_THINKS = re.compile(r"gpt-5|o\d")
_NEED_NOT_THINK = re.compile(r"gpt-5\.\d")  # these take tools in chat completions only while they do not think


def is_openai(base_url: str) -> bool:
    """Whether an address is OpenAI's own."""
    return urlsplit(base_url).hostname == urlsplit(OPENAI_URL).hostname


def request_fields(model: str, base_url: str, temperature: float = 0.0) -> dict[str, Any]:
    """What a request says besides; None: nothing. Servers other than OpenAI's refuse fields that they do not know."""
    effort, store, taken = None, None, True
    if (named := _GEMINI.search(model)) and int(named[1] or 3) >= 3:
        effort, taken = "low", temperature > 0  # loops below its own temperature, and thinks long unless told otherwise
    elif is_openai(base_url):
        effort, store, taken = "none" if _NEED_NOT_THINK.match(model) else None, False, not _THINKS.match(model)
    return {"temperature": temperature if taken else None, "reasoning_effort": effort, "store": store}
