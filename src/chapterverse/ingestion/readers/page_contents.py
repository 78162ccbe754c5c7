"""Tables of contents that a page has of itself. They repeat its headings and would answer questions with them."""

import re
from collections.abc import Sequence
from itertools import pairwise

from markdown_it.token import Token


def contents_lists(tokens: Sequence[Token]) -> set[int]:
    """Places of the tokens of lists that only repeat the page's headings, each as a link to one."""
    headings = {_words(token.content) for before, token in pairwise(tokens) if before.type == "heading_open"}
    found: set[int] = set()
    start, jumps, known = -1, 0, 0
    for place, token in enumerate(tokens):
        if token.level == 0 and token.type in ("bullet_list_open", "ordered_list_open"):
            start, jumps, known = place, 0, 0
        elif token.level == 0 and token.type in ("bullet_list_close", "ordered_list_close"):
            if start >= 0 and jumps > 1 and known * 2 > jumps:
                found.update(range(start, place + 1))
            start = -1
        elif start >= 0 and token.type in ("inline", "fence", "mark", "html_block", "code_block"):
            if token.type == "inline" and _is_jump(token.children or []):
                jumps += 1
                known += _words("".join(child.content for child in token.children or [])) in headings
            else:
                start = -1
    return found


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", re.sub(r"\{[^{}]*\}\s*$", "", text).casefold()))


def _is_jump(children: Sequence[Token]) -> bool:
    if len(children) < 2 or children[0].type != "link_open" or children[-1].type != "link_close":
        return False
    inside = sum(child.type == "link_open" for child in children)
    return inside == 1 and str(children[0].attrGet("href") or "").startswith("#")
