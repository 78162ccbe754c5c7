"""`llms.txt`: a Markdown file that lists the pages of a site (llmstxt.org)."""

import re
from typing import Final
from urllib.parse import urlsplit

from chapterverse.ingestion.sources.addresses import normalise

NAME: Final = "llms.txt"
MAX_BYTES: Final = 5_000_000
_LINK = re.compile(r"\[[^\[\]\n]{0,500}\]\(\s*<?([^\s()<>]{1,2000})>?[^()\n]{0,200}\)")
_WEB: Final = re.compile(r"https?://", re.IGNORECASE)
_MAX_PAGES: Final = 100_000


def is_listing(address: str) -> bool:
    """Whether an address or a path names an `llms.txt`."""
    return urlsplit(address).path.rpartition("/")[2].lower() == NAME


def listed(text: str, address: str = "") -> list[str]:
    """The listed targets in order, each once, resolved against `address` if it is given. Invalid web addresses are left
    out."""
    found = (link[1].partition("#")[0] for link in _LINK.finditer(text))
    targets = (normalise(target, page=address) if address or _WEB.match(target) else target for target in found)
    return list(dict.fromkeys(filter(None, targets)))[:_MAX_PAGES]
