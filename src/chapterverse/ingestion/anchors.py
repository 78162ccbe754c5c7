"""Computes the anchors that site generators give to headings, so that citations link to the right section.

Implements the rules of github-slugger (Docusaurus, mdBook, GitHub, Hugo), Python-Markdown's `toc` (MkDocs), VitePress
and docutils (Sphinx).
"""

import re
import unicodedata
from collections.abc import Callable

from chapterverse.ingestion.document import AnchorStyle

_VITEPRESS = re.compile(r"""[\s~`!@#$%^&*()\-_+=\[\]{}|\\;:"'“”‘’<>,.?/]+""")  # becomes one hyphen
_COUNTED = re.compile(r"(.*)_([0-9]{1,4000})", re.DOTALL)


class Anchors:
    """The anchors of one page, in the order of its headings."""

    def __init__(self, style: AnchorStyle) -> None:
        rules: dict[AnchorStyle, Callable[[str], str]] = {
            "github": self._github,
            "mkdocs": self._mkdocs,
            "vitepress": self._vitepress,
            "sphinx": self._sphinx,
        }
        self._style = style
        self._rule = rules[style]
        self._taken: dict[str, int] = {}  # anchor → number of duplicates of it so far
        self._numbered = 0

    def take(self, heading: str, explicit: str = "") -> str:
        """The anchor of the next heading: the explicit anchor if there is one, else the generator's."""
        anchor = explicit or self._rule(heading)
        if not explicit or self._style != "github":  # github-slugger ignores explicit ids
            self._taken.setdefault(anchor, 0)
        return anchor

    def _github(self, heading: str) -> str:
        anchor = slug = github_slug(heading)
        while anchor in self._taken:
            self._taken[slug] += 1
            anchor = f"{slug}-{self._taken[slug]}"
        return anchor

    def _mkdocs(self, heading: str) -> str:
        plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode("ascii")
        anchor = slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        counted = _COUNTED.fullmatch(slug)
        stem, number = (counted[1], int(counted[2])) if counted else (slug, 0)
        while anchor in self._taken or not anchor:
            self._taken[slug] = self._taken.get(slug, 0) + 1
            anchor = f"{stem}_{number + self._taken[slug]}"
        return anchor

    def _vitepress(self, heading: str) -> str:
        bare = "".join(char for char in unicodedata.normalize("NFKD", heading) if not "\u0300" <= char <= "\u036f")
        slug = _VITEPRESS.sub("-", re.sub(r"[\x00-\x1f]", "", bare)).strip("-").lower()
        anchor = slug = f"_{slug}" if slug[:1].isdigit() else slug
        while anchor in self._taken:
            self._taken[slug] += 1
            anchor = f"{slug}-{self._taken[slug]}"
        return anchor

    def _sphinx(self, heading: str) -> str:
        from docutils.nodes import make_id

        anchor = make_id(heading)
        while anchor in self._taken or not anchor:
            self._numbered += 1
            anchor = f"id{self._numbered}"
        return anchor


def github_slug(heading: str) -> str:
    """The slug that github-slugger makes from a heading."""
    return "".join(char for char in heading.lower() if _is_kept(char)).replace(" ", "-")


def _is_kept(char: str) -> bool:
    """Whether github-slugger keeps a character: letters, marks, digits, connectors, spaces and hyphens."""
    if char.isascii():
        return char.isalnum() or char in " -_"
    category = unicodedata.category(char)
    return category[0] in "LM" or category in ("Nd", "Nl", "Pc")
