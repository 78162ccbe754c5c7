"""Reads the position and the label of a folder of pages from the metadata files in it."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chapterverse.ingestion.ordering import number_of
from chapterverse.ingestion.readers import frontmatter

_CATEGORY: Final = ("_category_.json", "_category_.yml", "_category_.yaml")  # Docusaurus
_SECTION: Final = "_index.md"  # Hugo: the index page of a folder
_FRONT_MATTER: Final = 200_000  # characters at the start of a file in which front matter is looked for
_RENDER: Final = r"[ \t-]*render:[ \t]*['\"]?(?:never|false)\b"
_NO_PAGE: Final = re.compile(rf"^_?build:[ \t]*\n(?:[ \t-].*\n)*?{_RENDER}", re.MULTILINE)
_NO_PAGES: Final = re.compile(rf"^{_RENDER}", re.MULTILINE)
_CASCADE: Final = re.compile(r"^cascade:[ \t]*\n((?:[ \t-].*\n)*)", re.MULTILINE)
_LIST: Final = re.compile(r"[ \t]*- ")
_TARGET: Final = re.compile(r"^[ \t]*_?target:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FolderNote:
    """The position and label of a folder, as its author set them."""

    number: float | None = None  # its position
    label: str = ""  # its name in the site's navigation
    published: bool = True  # False: Hugo does not publish its files as pages; other pages may include them


def about(folder: Path) -> FolderNote:
    """The note of a folder, read from the metadata files in it."""
    try:
        for name in _CATEGORY:
            if (folder / name).is_file():
                found = frontmatter.top_level(_beginning(folder / name)) or {}  # JSON is YAML, too
                return FolderNote(number_of(found.get("position")), str(found.get("label") or ""))
        if (folder / _SECTION).is_file():
            text = _beginning(folder / _SECTION)
            front, body = frontmatter.split(text)
            return FolderNote(front.number, front.title, _publishes(text[: len(text) - len(body)]))
    except (OSError, ValueError):
        pass  # the pages are read even if this file cannot be
    return FolderNote()


def _publishes(front: str) -> bool:
    """Whether Hugo publishes the pages below a folder with this front matter. An entry that names its target is only
    for some of them."""
    cascade = _CASCADE.search(front)
    text = cascade[1] if cascade else ""
    item = _LIST.match(text)
    entries = re.split(f"^{item[0]}", text, flags=re.MULTILINE) if item else [text]
    return not any(_NO_PAGES.search(entry) and not _TARGET.search(entry) for entry in entries)


def is_published(text: str) -> bool:
    """Whether Hugo publishes a file with this text as a page."""
    body = frontmatter.split(text)[1]
    return not _NO_PAGE.search(text[: len(text) - len(body)])


def _beginning(path: Path) -> str:
    """The beginning of a file, which contains its front matter."""
    with path.open(encoding="utf-8-sig") as file:
        return file.read(_FRONT_MATTER)
