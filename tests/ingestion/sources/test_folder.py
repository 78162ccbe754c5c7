import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from chapterverse.errors import IngestionError
from chapterverse.ingestion.document import Skipped
from chapterverse.ingestion.options import Generator, SourceOptions
from chapterverse.ingestion.sources.folder import Folder
from tests.ingestion.sources.site import Outcomes, collect

PLAIN = SourceOptions()


def write(root: Path, *paths: str, data: bytes = b"# Title\n\nText.\n") -> None:
    for path in paths:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


async def read(place: Path, options: SourceOptions = PLAIN) -> tuple[Folder, Outcomes]:
    folder = Folder(place, options)
    return folder, await collect(folder.documents({}))


async def test_folder_reads_every_format_in_a_fixed_order(tmp_path: Path) -> None:
    book = tmp_path / "book"
    write(book, "b/2.rst", "b/1.md", "z.txt", "README.md", "a/x.mdx", "a/y.adoc", "a/w.HTML", "c.pdf", "d.epub")
    write(book, "picture.png", "Makefile", "notes.txt~", ".hidden.md")
    folder, found = await read(book)
    assert list(found.documents) == [
        "book/README.md",
        "book/c.pdf",
        "book/d.epub",
        "book/z.txt",
        "book/a/w.HTML",
        "book/a/x.mdx",
        "book/a/y.adoc",
        "book/b/1.md",
        "book/b/2.rst",
    ]
    assert found.skipped == found.failed == {}
    assert folder.complete
    assert folder.key == "book"
    page = found.documents["book/b/2.rst"]
    assert (page.path, page.source, page.format, page.anchors) == ("b/2.rst", "book", "rst", "sphinx")
    assert page.data == b"# Title\n\nText.\n"
    assert found.documents["book/a/w.HTML"].format == "html"
    assert found.documents["book/a/y.adoc"].format == "asciidoc"


async def test_tool_folders_and_partials_are_left_out(tmp_path: Path) -> None:
    book = tmp_path / "book"
    write(
        book,
        "page.md",
        "build/chapter.md",
        ".git/x.md",
        "node_modules/p/README.md",
        "a/__pycache__/x.txt",
        "_build/x.rst",
    )
    write(book, "_sidebar.md", "a/_note.mdx", "hugo/_index.md")
    _, found = await read(book)
    assert set(found.documents) == {"book/page.md", "book/build/chapter.md", "book/hugo/_index.md"}
    assert found.skipped == {"book/_sidebar.md": "partial", "book/a/_note.mdx": "partial"}


async def test_hugo_files_that_are_only_included_are_no_pages(tmp_path: Path) -> None:
    write(tmp_path, "site/content/page.md", "site/content/parts/deep/a.md")
    (tmp_path / "site/hugo.yaml").write_text('title: Rover\nparams:\n  repo: "x"\n  rover_version: "2.1"\nmenus: {}\n')
    (tmp_path / "site/content/parts/_index.md").write_text(
        "---\ncascade:\n- build:\n    list: never\n    render: never\n---\n"
    )
    (tmp_path / "site/content/b.md").write_bytes(b"---\r\ntitle: B\r\nbuild:\r\n  render: never\r\n---\r\nText.")
    (tmp_path / "site/content/d").mkdir()
    (tmp_path / "site/content/d/_index.md").write_text(
        "\ufeff---\ntitle: D\ncascade:\n  - _target:\n      path: /x/**\n    build:\n      render: never\n---\nText.",
        encoding="utf-8",
    )
    (tmp_path / "site/content/c.md").write_text('Rover {{< param "rover_version" >}}; build:\n  render: never')
    _, found = await read(tmp_path / "site")
    assert set(found.documents) == {"site/page.md", "site/c.md", "site/d/_index.md"}
    assert found.documents["site/d/_index.md"].chapters == ("D",)
    assert set(found.skipped) == {"site/b.md", "site/parts/_index.md", "site/parts/deep/a.md"}
    assert found.documents["site/c.md"].settings == {"rover_version": "2.1"}


async def test_large_files_are_skipped(tmp_path: Path) -> None:
    write(tmp_path, "book/page.md")
    with (tmp_path / "book/large.txt").open("wb") as file:
        file.truncate(200_000_000)  # a sparse file
    os.link(tmp_path / "book/large.txt", tmp_path / "book/large.pdf")
    _, found = await read(tmp_path / "book")
    assert found.skipped == {
        "book/large.txt": "200.0 MB, over the limit of 20 MB",
        "book/large.pdf": "200.0 MB, over the limit of 100 MB",
    }


async def test_links_do_not_leave_the_folder(tmp_path: Path) -> None:
    book = tmp_path / "book"
    write(book, "page.md", "part/inner.md")
    write(tmp_path, "secret/key.md")
    (book / "stolen.md").symlink_to(tmp_path / "secret/key.md")
    (book / "folder").symlink_to(tmp_path / "secret")
    (book / "loop").symlink_to(book)
    (book / "alias.md").symlink_to("part/inner.md")
    (book / "dangling.md").symlink_to("nowhere.md")
    (book / "circular.md").symlink_to("circular.md")
    folder, found = await read(book)
    assert set(found.documents) == {"book/page.md", "book/alias.md", "book/part/inner.md"}
    assert found.skipped == {
        "book/stolen.md": "a link that leaves the folder",
        "book/folder": "a link to a folder",
        "book/loop": "a link to a folder",
    }
    assert found.failed == {
        "book/dangling.md": "cannot be opened: No such file or directory",
        "book/circular.md": "cannot be opened: Too many levels of symbolic links",
    }
    assert folder.complete


async def test_linked_folder_keeps_the_name_of_the_link(tmp_path: Path) -> None:
    write(tmp_path, "book-2024/page.md")
    (tmp_path / "book").symlink_to("book-2024")
    folder, found = await read(tmp_path / "book")
    assert folder.key == "book"
    assert set(found.documents) == {"book/page.md"}


async def test_files_that_cannot_be_opened_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "book/page.md", "book/locked.md", "book/part/inner.md")
    opening, listing = Path.open, os.scandir

    def refuse(self: Path, mode: str) -> object:  # simulated, because root can open every file
        if self.name == "locked.md":
            raise PermissionError(13, "Permission denied", str(self))
        return opening(self, mode)

    def refuse_listing(path: str) -> object:
        if Path(path).name == "part":
            raise PermissionError(13, "Permission denied", str(path))
        return listing(path)

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(os, "scandir", refuse_listing)
    folder, found = await read(tmp_path / "book")
    assert set(found.documents) == {"book/page.md"}
    assert found.failed == {
        "book/locked.md": "cannot be opened: Permission denied",
        "book/part": "cannot be opened: Permission denied",
    }
    assert not folder.complete  # pages of the closed folder must not be removed


async def test_pipe_is_skipped(tmp_path: Path) -> None:
    write(tmp_path, "book/page.md")
    os.mkfifo(tmp_path / "book/pipe.md")
    _, found = await asyncio.wait_for(read(tmp_path / "book"), 5)
    assert found.skipped == {"book/pipe.md": "not a regular file"}


async def test_file_name_that_is_not_utf8_is_reported(tmp_path: Path) -> None:
    write(tmp_path, "book/page.md")
    (tmp_path / os.fsdecode(b"book/b\xe4r.md")).touch()
    _, found = await read(tmp_path / "book")
    assert found.failed == {"book/b?r.md": "the file's name is not UTF-8"}
    (tmp_path / os.fsdecode(b"book/b\xf6r.md")).touch()
    same = [page.why async for page in Folder(tmp_path / "book", PLAIN).documents({}) if isinstance(page, Skipped)]
    assert same == ["same address as b?r.md"]


async def test_include_exclude_and_max_pages(tmp_path: Path) -> None:
    write(tmp_path, *(f"book/part/{number}.md" for number in range(5)), "book/other/x.md")
    options = replace(PLAIN, include=("part/*",), exclude=("*/3.md",))
    folder, found = await read(tmp_path / "book", options)
    assert set(found.documents) == {f"book/part/{number}.md" for number in (0, 1, 2, 4)}
    assert found.skipped == {"book/part/3.md": "excluded", "book/other/x.md": "excluded"}
    assert folder.complete
    folder, found = await read(tmp_path / "book", replace(PLAIN, max_pages=2))
    assert len(found.documents) == 2
    assert list(found.skipped.values()) == ["limit of 2 pages reached; 4 files were not read"]
    assert not folder.complete
    folder, found = await read(tmp_path / "book", replace(PLAIN, exclude=("other/*", "part/[01].md"), max_pages=2))
    assert set(found.documents) == {"book/part/2.md", "book/part/3.md"}
    assert not folder.complete


def addressed(generator: Generator) -> SourceOptions:
    return SourceOptions(base_url="https://example.org/docs/", generator=generator, module="forced")


@pytest.mark.parametrize(
    ("generator", "addresses"),
    [
        (
            "docusaurus",
            {
                "index.md": "",
                "01-intro.md": "intro",
                "02-ros2/README.md": "ros2/",
                "02-ros2/01_nodes.mdx": "ros2/nodes",
                "02-ros2/2. topics.md": "ros2/topics",
                "02-ros2/actions/Actions.md": "ros2/actions/",
                "03-log/2024-05-notes.md": "log/2024-05-notes",
                "03-log/7.0-migration.md": "log/7.0-migration",
                "03-log/42.md": "log/42",
                "module-1-ros2/part-1-intro.md": "module-1-ros2/part-1-intro",
                "module-1-ros2/v1.2.md": "module-1-ros2/v1.2",
                "extra/manual.pdf": "extra/manual.pdf",
                "extra/two words & ü.md": "extra/two%20words%20%26%20%C3%BC",
            },
        ),
        (
            "mkdocs",
            {
                "index.md": "",
                "ros2/index.md": "ros2/",
                "ros2/nodes.md": "ros2/nodes/",
                "01-intro.md": "01-intro/",
                "site/index.html": "site/",
                "notes.txt": "notes.txt",
            },
        ),
        ("sphinx", {"index.rst": "index.html", "ros2/nodes.rst": "ros2/nodes.html", "ros2/more.md": "ros2/more.html"}),
        ("plain", {"01-intro.md": "01-intro.md", "ros2/index.html": "ros2/index.html"}),
    ],
)
async def test_addresses_follow_the_generator(tmp_path: Path, generator: Generator, addresses: dict[str, str]) -> None:
    write(tmp_path / "book", *addresses)
    folder, found = await read(tmp_path / "book", addressed(generator))
    assert folder.key == "https://example.org/docs"
    made = {page.path: page.url for page in found.documents.values()}
    assert made == {path: f"https://example.org/docs/{address}" for path, address in addresses.items()}
    assert {page.module for page in found.documents.values()} == {"forced"}


async def test_second_file_with_the_same_address_is_skipped(tmp_path: Path) -> None:
    write(tmp_path / "book", "ros2/README.md", "ros2/index.md")
    _, found = await read(tmp_path / "book", addressed("docusaurus"))
    assert set(found.documents) == {"https://example.org/docs/ros2/"}
    assert found.documents["https://example.org/docs/ros2/"].path == "ros2/index.md"
    assert found.skipped == {"book/ros2/README.md": "same address as ros2/index.md"}
    _, found = await read(tmp_path / "book", replace(addressed("docusaurus"), exclude=("*index.md",)))
    assert found.documents["https://example.org/docs/ros2/"].path == "ros2/README.md"
    assert found.skipped == {"book/ros2/index.md": "excluded"}


@pytest.mark.parametrize(
    ("configuration", "anchors"),
    [("docusaurus.config.ts", "github"), ("docusaurus.config.js", "github"), ("mkdocs.yml", "mkdocs")],
)
async def test_docs_folder_of_a_project_is_read(tmp_path: Path, configuration: str, anchors: str) -> None:
    project = tmp_path / "textbook"
    write(project, configuration, "README.md", "docs/ros2/nodes.md", "build/docs/index.html", "src/pages/x.md")
    by_project, from_project = await read(project)
    by_docs, from_docs = await read(project / "docs")
    assert from_project == from_docs
    assert by_project.key == by_docs.key == "textbook"
    assert set(from_docs.documents) == {"textbook/ros2/nodes.md"}
    assert from_docs.documents["textbook/ros2/nodes.md"].path == "ros2/nodes.md"
    assert from_docs.documents["textbook/ros2/nodes.md"].anchors == anchors
    _, part = await read(project / "docs/ros2")
    assert set(part.documents) == {"ros2/nodes.md"}
    assert part.documents["ros2/nodes.md"].anchors == anchors


@pytest.mark.parametrize("line", ["- item\n\n  <<< @/part.txt", '-8<- "part.txt"', "{{#include part.txt}}"])
async def test_page_with_an_include_depends_on_the_other_files(tmp_path: Path, line: str) -> None:
    write(tmp_path / "book", "page.md", data=f"# Page\n\n{line}\n".encode())
    digests = set()
    for part in (b"old", b"newer"):
        write(tmp_path / "book", "part.txt", data=part)
        _, found = await read(tmp_path / "book")
        digests.add(found.documents["book/page.md"].surroundings)
    assert len(digests) == 2


async def test_configuration_with_windows_line_ends_is_read(tmp_path: Path) -> None:
    write(tmp_path, "mkdocs.yml", data=b"\xef\xbb\xbfsite_name: Book\r\ndocs_dir: src\r\n")
    write(tmp_path, "README.md", "src/a.md")
    folder, found = await read(tmp_path)
    assert {page.path for page in found.documents.values()} == {"a.md"}
    assert folder.title == "Book"


async def test_spelling_of_the_path_does_not_change_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "textbook/mkdocs.yml", "textbook/docs/page.md", "textbook/other/x.md", "linked-2024/page.md")
    (tmp_path / "linked").symlink_to("linked-2024")
    monkeypatch.chdir(tmp_path / "textbook/other")
    for place in ("../docs", "..", "../docs/../docs", "../../textbook"):
        folder, found = await read(Path(place))
        assert (folder.key, list(found.documents)) == ("textbook", ["textbook/page.md"]), place
    assert Folder(Path("../../linked"), PLAIN).key == "linked"
    monkeypatch.chdir(tmp_path / "textbook")
    for place in ("docs", ".", "docs/..", str(tmp_path / "textbook/docs")):
        folder, found = await read(Path(place))
        assert (folder.key, list(found.documents)) == ("textbook", ["textbook/page.md"]), place


async def test_output_of_the_generator_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "book", "conf.py", "index.rst", "build/html/index.html", "build/html/_sources/index.rst.txt")
    write(tmp_path / "book", "part/build/page.rst", "site/setup/page.rst")
    _, found = await read(tmp_path / "book")
    assert set(found.documents) == {"book/index.rst", "book/part/build/page.rst", "book/site/setup/page.rst"}
    assert found.documents["book/index.rst"].anchors == "sphinx"


async def test_docusaurus_partials_are_skipped(tmp_path: Path) -> None:
    write(tmp_path / "book", "docusaurus.config.js", "docs/a.md", "docs/_parts/b.mdx", "docs/_index.md")
    _, found = await read(tmp_path / "book")
    assert set(found.documents) == {"book/a.md"}
    assert found.skipped == {"book/_index.md": "partial", "book/_parts/b.mdx": "partial"}


async def test_current_folder_is_named_after_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "book", "part/page.md")
    monkeypatch.chdir(tmp_path / "book/part")
    assert Folder(Path(), PLAIN).key == "part"
    folder, found = await read(Path(".."))
    assert folder.key == "book"
    assert set(found.documents) == {"book/part/page.md"}
    monkeypatch.chdir(tmp_path / "book")
    assert set((await read(Path("part/page.md")))[1].documents) == {"page.md"}


async def test_single_file_is_read(tmp_path: Path) -> None:
    write(tmp_path, "book/_draft.md", "book/other.md")
    (tmp_path / "link.md").symlink_to("book/other.md")
    folder, found = await read(tmp_path / "book/_draft.md")
    assert folder.key == "_draft.md"
    assert set(found.documents) == {"_draft.md"}  # named explicitly, so it is a page
    assert folder.complete
    assert set((await read(tmp_path / "link.md"))[1].documents) == {"link.md"}
    folder, found = await read(tmp_path / "book/other.md", addressed("docusaurus"))
    assert (
        folder.key == "https://example.org/docs/other"
    )  # not that of the folder, whose other pages must not be removed
    assert set(found.documents) == {folder.key}


async def test_source_is_not_complete_after_stopping_early(tmp_path: Path) -> None:
    write(tmp_path / "book", "a.md", "b.md")
    folder = Folder(tmp_path / "book", PLAIN)
    pages = folder.documents({})
    await anext(pages)
    await pages.aclose()
    assert not folder.complete


def test_folder_without_readable_files_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "book/picture.png", "book/node_modules/x.md")
    with pytest.raises(IngestionError, match=r"no readable file in .*book; supported are \.md .*\.pdf"):
        Folder(tmp_path / "book", PLAIN)
    with pytest.raises(IngestionError, match=r"picture\.png cannot be read; supported are \.md"):
        Folder(tmp_path / "book/picture.png", PLAIN)
    write(tmp_path, "book/page.md")
    with pytest.raises(IngestionError, match=r"not the address of a website: example\.org"):
        Folder(tmp_path / "book", SourceOptions(base_url="example.org"))


@pytest.mark.parametrize(
    ("configuration", "text", "page", "title"),
    [
        ("mkdocs.yml", "site_name: Material for MkDocs  # the name\nnav: []\n", "docs/index.md", "Material for MkDocs"),
        ("mkdocs.yml", 'nav:\n  - title: x\nsite_name: "Keeper\'s guide"\n', "docs/index.md", "Keeper's guide"),
        ("docs/conf.py", "html_title = 'x'\nproject = 'NumPy'\n", "docs/index.rst", "NumPy"),
        ("docusaurus.config.js", 'const c = {\n  title: "Helm",\n  navbar: {title: "x"}};', "docs/a.md", "Helm"),
        ("docusaurus.config.js", "const c = {\n  title: name,\n};", "docs/a.md", ""),
        ("book.toml", '[book]\ntitle = "The Book"\n', "src/a.md", "The Book"),
        ("notes.txt", "title: x\n", "docs/a.md", ""),
    ],
)
def test_title_is_read_from_the_configuration_of_the_project(
    tmp_path: Path, configuration: str, text: str, page: str, title: str
) -> None:
    write(tmp_path, page)
    write(tmp_path, configuration, data=text.encode())
    assert Folder(tmp_path, PLAIN).title == title
    assert Folder(tmp_path / Path(page).parent, PLAIN).title == title, "also if only the folder of its pages is given"
    assert Folder(tmp_path / page, PLAIN).title == "", "a single page is not the book"
