"""What single models and servers want or refuse in a request."""

import re
from typing import Any
from urllib.parse import urlsplit

from chapterverse.config import OPENAI_URL

_GEMINI = re.compile(r"gemini-(\d+)?")
_THINKS = re.compile(r"(?:gpt-5|o\d)")
_NEED_NOT_THINK = re.compile(r"gpt-5\.\d")


def is_openai(base_url: str) -> bool:
    """Whether an address is OpenAI's own."""
    return urlsplit(base_url).hostname == urlsplit(OPENAI_URL).hostname


def is_gemini_3(model: str) -> bool:
    """Whether it is Gemini 3 or later, which loops below its own temperature and thinks long unless told otherwise."""
    named = _GEMINI.search(model)
    return named is not None and int(named[1] or 3) >= 3


def refuses_temperature(model: str) -> bool:
    """Whether it is one of OpenAI's models that refuse a temperature."""
    return _THINKS.match(model) is not None


def need_not_think(model: str) -> bool:
    """Whether it is one of those that take tools in chat completions only while they do not think."""
    return _NEED_NOT_THINK.match(model) is not None


def judge_extra(model: str, base_url: str) -> dict[str, Any]:
    """What a judge's request says besides. A field that is None is left out of the request."""
    if is_gemini_3(model):
        return {"temperature": None, "reasoning_effort": "low"}
    if not is_openai(base_url):
        return {}
    effort = {"reasoning_effort": "none"} if need_not_think(model) else {}
    return {"store": False, **effort, **({"temperature": None} if refuses_temperature(model) else {})}
