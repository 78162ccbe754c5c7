"""Books that would harm whoever reads them: each is read within seconds, and nothing outside of it is opened."""

import asyncio
import time
from pathlib import Path

import pytest

from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, NothingToRead, Skipped, Unreadable
from chapterverse.ingestion.folder import Folder
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.readers import read

SECRET = "nobody may read this"
SECONDS = 20


def ingest(folder: Path) -> tuple[str, list[str]]:
    """All text of a folder, and why files were left out."""

    async def run() -> tuple[str, list[str]]:
        said, why = [], []
        async for one in Folder(folder, SourceOptions()).documents({}):
            if isinstance(one, Skipped):
                why.append(one.why)
            elif isinstance(one, Document):
                try:
                    said += [compose(one, draft).text for draft in read(one)]
                except (NothingToRead, Unreadable) as error:
                    why.append(str(error))
        return "\n".join(said), why

    return asyncio.run(run())


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


LOOPS = {
    "Sphinx": {
        "conf.py": "",
        "index.rst": "T\n=\n\nStart.\n\n.. include:: b.rst\n",
        "b.rst": "B\n=\n\nMiddle.\n\n.. include:: index.rst\n",
    },
    "AsciiDoc": {
        "a.adoc": "= T\n\nStart.\n\ninclude::b.adoc[]\n",
        "b.adoc": "Middle.\n\ninclude::a.adoc[]\n",
    },
    "MkDocs": {
        "mkdocs.yml": "site_name: x\n",
        "docs/index.md": '# T\n\nStart.\n\n--8<-- "docs/b.md"\n',
        "docs/b.md": '# B\n\nMiddle.\n\n--8<-- "docs/index.md"\n',
    },
    "mdBook": {
        "book.toml": "",
        "src/SUMMARY.md": "- [T](a.md)\n",
        "src/a.md": "# T\n\nStart.\n\n{{#include b.md}}\n",
        "src/b.md": "Middle.\n\n{{#include a.md}}\n",
    },
    "VitePress": {
        ".vitepress/config.js": "",
        "a.md": "# T\n\nStart.\n\n<!--@include: ./b.md-->\n",
        "b.md": "Middle.\n\n<!--@include: ./a.md-->\n",
    },
}


@pytest.mark.parametrize("generator", LOOPS)
def test_includes_that_lead_in_a_circle_end(tmp_path: Path, generator: str) -> None:
    started = time.process_time()
    said, _ = ingest(write(tmp_path / "book", LOOPS[generator]))
    assert "Start." in said
    assert "Middle." in said
    assert time.process_time() - started < SECONDS


LEAVING = {
    "Sphinx": {
        "conf.py": (
            "import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"
            "rst_epilog = open('../secret.txt').read()\n"
        ),
        "index.rst": (
            "T\n=\n\nStart.\n\n.. include:: ../secret.txt\n.. literalinclude:: ../secret.txt\n\n"
            ".. csv-table::\n   :file: ../secret.txt\n\n.. raw:: html\n   :file: ../secret.txt\n"
        ),
    },
    "AsciiDoc": {"a.adoc": "= T\n\nStart.\n\ninclude::../secret.txt[]\n\ninclude::{docdir}/../secret.txt[]\n"},
    "MkDocs": {"mkdocs.yml": "site_name: x\n", "docs/index.md": '# T\n\nStart.\n\n--8<-- "../secret.txt"\n'},
    "mdBook": {
        "book.toml": "",
        "src/SUMMARY.md": "- [T](a.md)\n",
        "src/a.md": "# T\n\nStart.\n\n{{#include ../../secret.txt}}\n",
    },
}


@pytest.mark.parametrize("generator", LEAVING)
def test_includes_that_leave_the_folder_are_refused(tmp_path: Path, generator: str) -> None:
    (tmp_path / "secret.txt").write_text(SECRET)
    folder = write(tmp_path / "book", LEAVING[generator])
    said, _ = ingest(folder)
    assert "Start." in said
    assert SECRET not in said
    assert not any(place.name == "ran" for place in tmp_path.rglob("*"))  # conf.py was not run


@pytest.mark.parametrize("name", ["t.md", "t.rst", "t.adoc", "t.html"])
def test_a_table_of_50_megabytes_is_refused_by_its_size(tmp_path: Path, name: str) -> None:
    write(tmp_path / "book", {"index.md": "# T\n\nStart.\n"})
    with (tmp_path / "book" / name).open("wb") as file:
        file.write(b"| a | b |\n|---|---|\n")
        file.truncate(50_000_000)
    said, why = ingest(tmp_path / "book")
    assert "Start." in said
    assert why == ["50.0 MB, over the limit of 20 MB"]


def test_a_table_that_lies_in_a_file_of_50_megabytes_is_left_out(tmp_path: Path) -> None:
    pages = {"conf.py": "", "index.rst": "T\n=\n\nStart.\n\n.. csv-table::\n   :file: large.csv\n"}
    folder = write(tmp_path / "book", pages)
    with (folder / "large.csv").open("wb") as file:
        file.write(b"a,b\n")
        file.truncate(50_000_000)
    started = time.process_time()
    said, _ = ingest(folder)
    assert said == "# T\n\nStart."
    assert time.process_time() - started < SECONDS


BROKEN = {
    "t.md": "- a\n      - b\n    ```\n> - c\n:::note\n!!! tip\n    - d\n</div><div><li>e<table><td>f\n",
    "t.rst": "T\n=\n\n* a\n    * b\n  .. note::\n c\n\n   - d\n\n+--+\n| e\n+==\n\n.. list-table::\n\n   * - f\n",
    "t.adoc": "= T\n\n* a\n+\n====\n** b\n|===\n|c\n----\nd\n====\n....\ne\n",
    "t.html": "<main><ul><p>a<li><table><tr>b<td><h2>c<dl><dd>d</ul></table><dt>e<blockquote><pre>f</main>",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_nesting_keeps_the_words(tmp_path: Path, name: str) -> None:
    said, why = ingest(write(tmp_path / "book", {name: BROKEN[name]}))
    assert why == []
    assert {"a", "b", "c"} <= set(said.replace("`", " ").split())
