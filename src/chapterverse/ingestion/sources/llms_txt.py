"""`llms.txt`: a Markdown file that lists the pages of a site (llmstxt.org)."""

import re
from typing import Final
from urllib.parse import urljoin, urlsplit

NAME: Final = "llms.txt"
MAX_BYTES: Final = 5_000_000
_LINK = re.compile(r"\[[^\[\]\n]{0,500}\]\(\s*<?([^\s()<>]{1,2000})>?[^()\n]{0,200}\)")
_MAX_PAGES: Final = 100_000


def is_listing(address: str) -> bool:
    """Whether an address or a path names an `llms.txt`."""
    return urlsplit(address).path.rpartition("/")[2].lower() == NAME


def listed(text: str, address: str = "") -> list[str]:
    """The listed targets in order, each once. They are resolved against `address` if it is given."""
    found = (link[1].partition("#")[0] for link in _LINK.finditer(text))
    targets = dict.fromkeys(urljoin(address, target) if address else target for target in found if target)
    return list(targets)[:_MAX_PAGES]
