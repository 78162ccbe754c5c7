"""Contents, pages and images: the contents are read once for each generation of the book."""

import asyncio
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path

import pytest

from chapterverse.api.pages import Contents, first_paragraph, render_page
from chapterverse.book import Edition, Fingerprint, Manifest, Page
from chapterverse.errors import NotFound
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document
from chapterverse.ingestion.images import image_name
from chapterverse.ingestion.readers import read
from chapterverse.models import SearchFilters
from chapterverse.settings import Settings
from tests.scripted import Scripted, without_engines
from tests.served import serve

ONE = Page("1", "one.md", "One", "guide", "source", "", (), ())


@dataclass
class Book:
    """An index that counts how often its pages are listed."""

    generation: str = "first"
    shelved: list[Page] = field(default_factory=lambda: [ONE])
    listed: int = 0

    async def manifest(self) -> Manifest:
        return Manifest(Fingerprint("", 0, ""), self.generation, "", 0, 0)

    async def page(self, page_id: str) -> Page | None:
        return next((page for page in self.shelved if page.page_id == page_id), None)

    async def pages(self) -> list[Page]:
        self.listed += 1
        return self.shelved


async def test_contents_are_read_again_when_the_book_changed() -> None:
    contents, book = Contents(), Book()
    for _ in range(3):
        assert [page.title for page in (await contents.read(book)).pages] == ["One"]  # type: ignore[arg-type]
    assert book.listed == 1
    book.generation, book.shelved = "second", [ONE, replace(ONE, page_id="2", title="Two", url="two.md")]
    assert (await contents.read(book)).total_pages == 2  # type: ignore[arg-type]
    assert book.listed == 2


async def test_pages_of_an_older_generation_are_not_kept_for_the_new_one() -> None:
    contents, book, reading, finish = Contents(), Book(), asyncio.Event(), asyncio.Event()

    class SlowBook(Book):
        async def pages(self) -> list[Page]:
            reading.set()
            await finish.wait()
            return await super().pages()

    late = asyncio.create_task(contents.read(SlowBook()))  # type: ignore[arg-type]
    await reading.wait()
    book.generation, book.shelved = "second", [ONE, replace(ONE, page_id="2", title="Two", url="two.md")]
    assert (await contents.read(book)).total_pages == 2  # type: ignore[arg-type]
    finish.set()
    assert (await late).total_pages == 1
    assert (await contents.read(book)).total_pages == 2  # type: ignore[arg-type]


async def test_every_choice_of_editions_is_made_of_the_same_lists() -> None:
    editions = [Edition("guide", f"{number}.0") for number in range(4)]
    contents, book = Contents(), Book(shelved=[replace(ONE, edition=edition.key) for edition in editions])

    async def manifest() -> Manifest:
        return Manifest(Fingerprint("", 0, ""), "first", "", 0, 0, editions=tuple(editions))

    book.manifest = manifest  # type: ignore[method-assign]
    for chosen in permutations([edition.version for edition in editions], 2):
        listed = await contents.read(book, SearchFilters(version=list(chosen)))  # type: ignore[arg-type]
        assert [page.version for page in listed.pages] == sorted(chosen), "the order of the index"
    assert book.listed <= len(editions), "a list for every choice would fill the memory"


async def test_category_is_the_chapter_title_or_the_folder_name() -> None:
    pages = [
        ONE,
        replace(ONE, page_id="2", module="getting-started"),
        replace(ONE, page_id="3", chapters=("A Guide", "Part")),
    ]
    listed = (await Contents().read(Book(shelved=pages))).pages  # type: ignore[arg-type]
    assert [page.category for page in listed] == ["Guide", "Getting started", "A Guide"]


@pytest.mark.parametrize(
    ("text", "shown"), [("本" * 100 + "。" + "書" * 300, "本" * 100 + "。"), ("本" * 300, "本" * 240 + " …")]
)
async def test_description_of_a_page_without_blanks(text: str, shown: str, tmp_path: Path) -> None:
    document = Document("t", "t.md", "s", "markdown", f"# T\n\n{text}".encode())
    page = compose(document, read(document)[0])
    rendered = await render_page(page.page_id, Book(shelved=[page]), tmp_path)  # type: ignore[arg-type]
    assert first_paragraph(rendered) == shown


def illustrated() -> Page:
    text = (
        b"# T\n\nA *word* and [more](https://b.test/more) ![pic](https://b.test/in.png).\n\n"
        b"![alone](https://b.test/x.svg)\n\n!!! tip\n    Do."
    )
    document = Document("https://b.test/t", "t.md", "s", "markdown", text)
    return compose(document, read(document)[0])


async def test_rendered_page_has_blocks_and_marks(tmp_path: Path) -> None:
    page = illustrated()
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / image_name("https://b.test/x.svg")).write_bytes(b"<svg/>")
    book = Book(shelved=[page])
    shown = await render_page(page.page_id, book, tmp_path)  # type: ignore[arg-type]
    assert [(mark.kind, shown.text[mark.start : mark.end], mark.target, mark.source) for mark in shown.marks] == [
        ("emphasis", "word", "", ""),
        ("link", "more", "https://b.test/more", ""),
        ("image", "", "https://b.test/in.png", ""),  # not stored
    ]
    assert [(block.kind, block.info) for block in shown.blocks] == [
        ("heading", ""),
        ("paragraph", ""),
        ("image", "https://b.test/x.svg"),
        ("admonition", "tip"),
    ]
    assert shown.blocks[2].source == f"images/{image_name('https://b.test/x.svg')}"
    with pytest.raises(NotFound):
        await render_page("other", book, tmp_path)  # type: ignore[arg-type]


def test_image_is_served_sandboxed(tmp_path: Path) -> None:
    name = image_name("https://b.test/x.svg")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / name).write_bytes(b"<svg><script>alert(1)</script></svg>")
    settings = Settings.load(chapterverse_home=tmp_path)
    with serve(settings, opening=without_engines(index=Book()), answering=Scripted()) as server:
        reply = server.http.get(f"/images/{name}")
        assert (reply.status_code, reply.headers["content-type"]) == (200, "image/svg+xml")
        assert "sandbox" in reply.headers["content-security-policy"]
        assert reply.headers["x-content-type-options"] == "nosniff"
        for other in (f"{'0' * 32}.png", "..%2Fsecret.png", "x"):
            assert server.http.get(f"/images/{other}").status_code == 404


def test_image_requires_a_key_if_keys_are_configured(tmp_path: Path) -> None:
    name = image_name("https://b.test/x.svg")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / name).write_bytes(b"<svg/>")
    settings = Settings.load(chapterverse_home=tmp_path, api_keys="sesame")
    with serve(settings, opening=without_engines(index=Book()), answering=Scripted()) as server:
        assert server.http.get(f"/images/{name}").status_code == 401
        assert server.http.get(f"/images/{name}", headers={"X-API-Key": "sesame"}).status_code == 200
