"""What an author says about a folder of pages: its place among the others and its name."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chapterverse.ingestion.ordering import number_of
from chapterverse.ingestion.readers import frontmatter

_CATEGORY: Final = ("_category_.json", "_category_.yml", "_category_.yaml")  # Docusaurus
_SECTION: Final = "_index.md"  # Hugo: a page that stands for its folder
_FRONT_MATTER: Final = 200_000  # characters of a file in which its front matter ends


@dataclass(frozen=True, slots=True)
class About:
    """What the author of a folder says about it."""

    number: float | None = None  # by which it is to be read
    label: str = ""  # by which the site's navigation calls it


def about(folder: Path) -> About:
    """What a folder's own files say about it."""
    try:
        for name in _CATEGORY:
            if (folder / name).is_file():
                found = frontmatter.top_level(_beginning(folder / name)) or {}  # JSON is YAML, too
                return About(number_of(found.get("position")), str(found.get("label") or ""))
        if (folder / _SECTION).is_file():
            said = frontmatter.split(_beginning(folder / _SECTION))[0]
            return About(said.number, said.title)
    except (OSError, ValueError):
        pass  # a page is not lost for the sake of its place
    return About()


def _beginning(path: Path) -> str:
    """The beginning of a file, as much as front matter can have."""
    with path.open(encoding="utf-8") as file:
        return file.read(_FRONT_MATTER)
