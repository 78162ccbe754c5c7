"""Copies images of the ingested folder for the reader page.

Images of other sites are never fetched or shown, so that reading a page makes no request to other hosts.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from chapterverse.book import Page
from chapterverse.ingestion.document import Tree

MEDIA_TYPES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".svg": "image/svg+xml",
}
MAX_BYTES: Final = 5_000_000  # of one image
_FOLDER = "images"
_NAME = re.compile(r"[0-9a-f]{32}\.[a-z]{3,4}")
_PUBLIC = ("static", "public")  # folders of static files of Docusaurus, Hugo, VitePress and Astro

Find = Callable[[str], Path | None]


def image_name(address: str, edition: str = "") -> str:
    """The file name of a stored image; empty if the address is not that of an image."""
    ending = os.path.splitext(urlsplit(address).path)[1].lower()  # noqa: PTH122 - of an address
    key = f"{edition}\x1f{address}" if edition else address
    return f"{hashlib.sha256(key.encode()).hexdigest()[:32]}{ending}" if ending in MEDIA_TYPES else ""


def stored_image(home: Path, name: str) -> Path | None:
    """The path of a stored image; None if there is none."""
    if not _NAME.fullmatch(name) or Path(name).suffix not in MEDIA_TYPES:
        return None
    place = home / _FOLDER / name
    return place if place.is_file() else None


def keep_images(home: Path, page: Page, find: Find) -> None:
    """Copy the new and changed images of a page. For one that cannot be read, the alternative text is shown."""
    for address in _addresses(page):
        if not (name := image_name(address, page.edition)):
            continue
        place = home / _FOLDER / name
        try:
            source = find(address)  # fails for a name that no file can have
            if source is None or source.stat().st_size > MAX_BYTES:
                continue
            data = source.read_bytes()
            if place.exists() and place.read_bytes() == data:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            fresh = place.with_suffix(f".{os.getpid()}.part")
            fresh.write_bytes(data)
            fresh.replace(place)
        except OSError:
            continue


def find_image(tree: Tree, address: str) -> Path | None:
    """The file for an address; None if it is not inside of the folder."""
    within = Path(tree.within or tree.root).resolve()
    for place in _places(tree, address):
        if place.is_file() and (there := place.resolve()).is_relative_to(within):
            return there
    return None


def _places(tree: Tree, address: str) -> Iterator[Path]:
    root, within = Path(tree.root), Path(tree.within or tree.root)
    start = f"{tree.base or tree.name}/"
    address = re.split("[?#]", address, maxsplit=1)[0]  # a.png?raw=true, a.png#only-light
    if address.startswith(start):
        below = unquote(address.removeprefix(start)).lstrip("/")
        yield root / below
        yield within / below
    if tree.base and urlsplit(address).netloc == urlsplit(tree.base).netloc:
        path = unquote(urlsplit(address).path).lstrip("/")
        yield from (folder / public / path for folder in (within, root) for public in _PUBLIC)


def _addresses(page: Page) -> Iterator[str]:
    yield from (block.info for block in page.blocks if block.kind == "image" and block.info)
    yield from (mark.target for mark in page.marks if mark.kind == "image" and mark.target)
