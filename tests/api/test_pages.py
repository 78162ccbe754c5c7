"""The table of contents is read once for each state of the book."""

import json
from dataclasses import dataclass, field, replace

from chapterverse.api.pages import Contents
from chapterverse.book import Fingerprint, Manifest, Page

ONE = Page("1", "one.md", "One", "guide", "source", "", (), ())


@dataclass
class Book:
    """An index that counts how often it is listed."""

    generation: str = "first"
    shelved: list[Page] = field(default_factory=lambda: [ONE])
    listed: int = 0

    async def manifest(self) -> Manifest:
        return Manifest(Fingerprint("", 0, ""), self.generation, "", 0, 0)

    async def pages(self) -> list[Page]:
        self.listed += 1
        return self.shelved


async def test_it_is_read_again_when_the_book_changed() -> None:
    contents, book = Contents(), Book()
    for _ in range(3):
        assert [page.title for page in (await contents.read(book)).pages] == ["One"]  # type: ignore[arg-type]
        assert json.loads(await contents.brief(book))["pages"] == [  # type: ignore[arg-type]
            {"page_id": "1", "title": "One", "module": "guide", "url": "one.md"}
        ]
    assert book.listed == 1
    book.generation, book.shelved = "second", [ONE, replace(ONE, page_id="2", title="Two")]
    assert (await contents.read(book)).total_pages == 2  # type: ignore[arg-type]
    assert len(json.loads(await contents.brief(book))["pages"]) == 2  # type: ignore[arg-type]
    assert book.listed == 2
