"""`llms.txt`: a Markdown file in which a site lists the pages that it wants to be read (llmstxt.org)."""

import re
from typing import Final
from urllib.parse import urljoin, urlsplit

NAME: Final = "llms.txt"
MAX_BYTES: Final = 5_000_000
_LINK = re.compile(r"\[[^\[\]\n]{0,500}\]\(\s*<?([^\s()<>]{1,2000})>?[^()\n]{0,200}\)")
_MAX_PAGES: Final = 100_000


def is_listing(address: str) -> bool:
    """Whether an address or a path is that of such a file."""
    return urlsplit(address).path.rpartition("/")[2].lower() == NAME


def listed(text: str, address: str = "") -> list[str]:
    """What the file names, in its order, each once; relative to `address` where that is given."""
    found = (link[1].partition("#")[0] for link in _LINK.finditer(text))
    made = dict.fromkeys(urljoin(address, target) if address else target for target in found if target)
    return list(made)[:_MAX_PAGES]
