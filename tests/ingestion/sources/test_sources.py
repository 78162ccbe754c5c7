from pathlib import Path

import pytest

from chapterverse.errors import IngestionError
from chapterverse.ingestion.sources import Source, SourceOptions, open_source
from chapterverse.ingestion.sources.folder import Folder
from chapterverse.ingestion.sources.website import Website
from tests.ingestion.sources.site import collect

OPTIONS = SourceOptions()


@pytest.mark.parametrize(
    ("spec", "key"),
    [
        ("https://example.org", "https://example.org"),
        ("https://example.org/", "https://example.org"),
        ("HTTPS://Example.org:443/docs/#top", "https://example.org/docs"),
        ("http://example.org:8080/docs?utm_source=mail", "http://example.org:8080/docs"),
    ],
)
def test_address_opens_a_website(spec: str, key: str) -> None:
    source: Source = open_source(spec, OPTIONS)
    assert isinstance(source, Website)
    assert source.key == key
    assert source.place.startswith("http")
    assert not source.complete


def test_path_opens_a_folder_or_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "page.md").write_text("# Page")
    folder: Source = open_source(str(tmp_path / "book"), OPTIONS)
    assert isinstance(folder, Folder)
    assert folder.key == "book"
    assert folder.place == str(tmp_path / "book")
    file = open_source(str(tmp_path / "book" / "page.md"), OPTIONS)
    assert (file.key, file.place) == ("page.md", str(tmp_path / "book" / "page.md"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_source("~/book", OPTIONS).key == "book"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("no/such/book", "no such file or folder: no/such/book"),
        ("", "no such file or folder: "),
        ("x" * 300, "no such file or folder: x"),
        ("ftp://example.org/book", "only http and https addresses can be read: ftp://example.org/book"),
        ("file:///etc", "only http and https addresses can be read"),
        ("http://", "not the address of a website: http://"),
        ("https://example.org:99999/", "not the address of a website"),
    ],
)
def test_invalid_source_is_an_error(spec: str, message: str) -> None:
    with pytest.raises(IngestionError) as caught:
        open_source(spec, OPTIONS)
    assert caught.value.message.startswith(message)


async def test_local_llms_txt_lists_files_or_addresses(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("a.md", "b/c.md", "other.md"):
        (tmp_path / name).write_text("# Page\n\nText.")
    (tmp_path / "llms.txt").write_text("# Book\n\n- [A](./a.md)\n- [C](b/c.md): the last\n")
    found = await collect(open_source(str(tmp_path / "llms.txt"), OPTIONS).documents({}))
    assert {page.path for page in found.documents.values()} == {"a.md", "b/c.md"}
    repository = "https://github.example/o/r"
    for first in ("https://example.org/a", "https://example.org/new", repository, "https://[your-domain]/x"):
        lines = [f"- [Page]({url})\n" for url in (first, "https://example.org/a", "https://example.org/b", repository)]
        (tmp_path / "llms.txt").write_text("".join(lines))
        source = open_source(str(tmp_path / "llms.txt"), OPTIONS)
        assert isinstance(source, Website)
        assert source.key == "https://example.org/llms.txt", "the same for every order of the pages"
    (tmp_path / "llms.txt").write_text("nothing")
    with pytest.raises(IngestionError, match="lists no page"):
        open_source(str(tmp_path / "llms.txt"), OPTIONS)


async def test_local_llms_txt_lists_files_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text("site_name: Book")
    for name in ("intro.md", "my page.md", "a[1].md", "other.md"):
        (tmp_path / "docs" / name).write_text("# Page\n\nText.")
    (tmp_path / "llms.txt").write_text("- [I](docs/intro.md)\n- [M](/docs/my%20page.md)\n- [A](<docs/a%5B1%5D.md>)\n")
    spec = str(tmp_path / "llms.txt")
    found = await collect(open_source(spec, OPTIONS).documents({}))
    assert {page.path for page in found.documents.values()} == {"intro.md", "my page.md", "a[1].md"}
    found = await collect(open_source(spec, SourceOptions(include=["*intro.md"])).documents({}))
    assert {page.path for page in found.documents.values()} == {"intro.md"}
