"""What single models want or refuse in a request."""

import re
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from chapterverse.config import OPENAI_URL

_GEMINI = re.compile(r"gemini-(\d+)?")
_THINKS = re.compile(r"gpt-5|o\d")
_NEED_NOT_THINK = re.compile(r"gpt-5\.\d")  # these take tools in chat completions only while they do not think


class Quirks(NamedTuple):
    """What a request says besides, or leaves out."""

    effort: Literal["none", "low"] | None = None  # of thinking
    temperature: Literal["any", "not zero", "none"] = "any"
    store: bool | None = None


def is_openai(base_url: str) -> bool:
    """Whether an address is OpenAI's own."""
    return urlsplit(base_url).hostname == urlsplit(OPENAI_URL).hostname


def quirks_of(model: str, base_url: str) -> Quirks:
    """The quirks of a model. Servers other than OpenAI's refuse fields that they do not know."""
    if (named := _GEMINI.search(model)) and int(named[1] or 3) >= 3:
        return Quirks("low", "not zero")  # loops below its own temperature, and thinks long unless told otherwise
    if not is_openai(base_url):
        return Quirks()
    effort: Literal["none"] | None = "none" if _NEED_NOT_THINK.match(model) else None
    return Quirks(effort, "none" if _THINKS.match(model) else "any", store=False)
