"""Three pages of an mdBook. The expected text was checked by hand."""

import asyncio
from pathlib import Path

import pytest

from chapterverse.book import Page
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document
from chapterverse.ingestion.inline import plain
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.readers import read
from chapterverse.ingestion.sources.folder import Folder

FILES = {
    "book.toml": '[book]\ntitle = "The Rover"\n',
    "src/SUMMARY.md": (
        "# Summary\n\n[Welcome](welcome.md)\n\n# Driving\n\n- [Wheels](driving/wheels.md)\n"
        "  - [Brakes](driving/brakes.md)\n"
    ),
    "src/welcome.md": (
        "# Welcome\n\nStart with [the wheels](driving/wheels.md#turning).\n\n"
        "```admonish warning title='Mind the arm'\nIt moves.\n```\n"
    ),
    "src/driving/wheels.md": (
        "# Wheels\n\n{{#include ../parts/intro.md}}\n\n## Turning\n\n"
        "```rust\n{{#rustdoc_include ../../code/turn.rs:turn}}\n```\n"
    ),
    "src/driving/brakes.md": (
        "# Brakes\n\nTwo lines of the program:\n\n```rust\n{{#include ../../code/turn.rs:1:2}}\n```\n\n"
        "```rust\n# use rover::stop;\nstop();\n## kept\n```\n"
    ),
    "src/parts/intro.md": "Four wheels carry the rover.\n",
    "code/turn.rs": (
        "fn main() {\n    start();\n    // ANCHOR: turn\n    turn(90);\n    // ANCHOR_END: turn\n    stop();\n}\n"
    ),
}


@pytest.fixture
def pages(tmp_path: Path) -> dict[str, Page]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    async def run() -> dict[str, Page]:
        folder = Folder(tmp_path, SourceOptions(base_url="https://b.test"))
        found = [one async for one in folder.documents({}) if isinstance(one, Document)]
        made = [compose(one, draft) for one in found for draft in read(one)]
        return {page.title: page for page in sorted(made, key=lambda page: page.place)}

    return asyncio.run(run())


def test_pages_have_the_order_and_chapters_of_the_summary(pages: dict[str, Page]) -> None:
    assert list(pages) == ["Welcome", "Wheels", "Brakes"]
    assert [page.url for page in pages.values()] == [
        "https://b.test/welcome.html",
        "https://b.test/driving/wheels.html",
        "https://b.test/driving/brakes.html",
    ]
    assert [page.chapters for page in pages.values()] == [(), ("Driving",), ("Driving", "Wheels")]


def test_includes_select_anchors_and_lines(pages: dict[str, Page]) -> None:
    assert pages["Wheels"].text == (
        "# Wheels\n\nFour wheels carry the rover.\n\n## Turning\n\n```rust\n    turn(90);\n```"
    )
    assert "```rust\nfn main() {\n    start();\n```" in pages["Brakes"].text


def test_links_are_resolved_and_admonish_blocks_are_admonitions(pages: dict[str, Page]) -> None:
    page = pages["Welcome"]
    assert [mark.target for mark in page.marks if mark.kind == "link"] == ["https://b.test/driving/wheels.html#turning"]
    assert [(block.kind, page.text[block.start : block.end]) for block in page.blocks[2:]] == [
        ("admonition", "Mind the arm: It moves.")
    ]


def test_hidden_lines_of_rust_code_are_left_out(pages: dict[str, Page]) -> None:
    assert "```rust\nstop();\n# kept\n```" in pages["Brakes"].text


def test_listing_keeps_its_file_name_and_caption() -> None:
    text = '<Listing number="4-1" file-name="src/main.rs" caption="A *big* `Box<T>` &amp; more">\n\n'
    text += "```rust\nrun();\n```\n\n</Listing>\n\n<Listing>\n\n```rust\nstop();\n```\n\n</Listing>\n\nEnd."
    (draft,) = read(Document("a.md", "a.md", "b", "markdown", text.encode()))
    assert [(part.kind, plain(part.text)) for part in draft.parts] == [
        ("paragraph", "Filename: src/main.rs"),
        ("code", "run();"),
        ("paragraph", "Listing 4-1: A big `Box<T>` & more"),
        ("code", "stop();"),
        ("paragraph", "End."),
    ]
