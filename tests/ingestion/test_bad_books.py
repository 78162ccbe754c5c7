"""Hostile and broken books are read in bounded time, and no file outside of them is opened."""

import asyncio
import re
import time
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, NothingToRead, Skipped, Unreadable
from chapterverse.ingestion.inclusion import refused_files
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.readers import read
from chapterverse.ingestion.sources.folder import Folder

SECRET = "nobody may read this"
SECONDS = 20


def ingest(folder: Path) -> tuple[str, list[str]]:
    """All text of a folder, and the reasons why files were left out."""

    async def run() -> tuple[str, list[str]]:
        text, why = [], []
        async for one in Folder(folder, SourceOptions()).documents({}):
            if isinstance(one, Skipped):
                why.append(one.why)
            elif isinstance(one, Document):
                try:
                    with refused_files() as refused:
                        text += [compose(one, draft).text for draft in read(one)]
                    why += [f"refused {name}" for name in refused]
                except (NothingToRead, Unreadable) as error:
                    why.append(str(error))
        return "\n".join(text), why

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
    "Docusaurus": {
        "docusaurus.config.js": "",
        "docs/a.mdx": "import B from './_b.mdx';\n\n# T\n\nStart.\n\n<B />\n",
        "docs/_b.mdx": "import A from './a.mdx';\nimport B from './_b.mdx';\n\nMiddle.\n\n<A />\n\n<B />\n",
    },
    "Hugo": {
        "hugo.toml": "",
        "content/a.md": '# T\n\nStart.\n\n{{% include "b.md" %}}\n',
        "content/b.md": 'Middle.\n\n{{% include "a.md" %}}\n',
    },
    "MyST": {
        "conf.py": "extensions = ['myst_parser']\n",
        "index.md": "# T\n\nStart.\n\n```{include} b.md\n```\n",
        "b.md": "Middle.\n\n```{include} index.md\n```\n",
    },
}


@pytest.mark.parametrize("generator", LOOPS)
def test_circular_includes_end(tmp_path: Path, generator: str) -> None:
    started = time.process_time()
    text, _ = ingest(write(tmp_path / "book", LOOPS[generator]))
    assert "Start." in text
    assert "Middle." in text
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
    "VitePress": {
        ".vitepress/config.js": "",
        "a.md": "# T\n\nStart.\n\n<<< ../secret.txt\n\n<!--@include: ../secret.txt-->\n",
    },
    "Docusaurus": {
        "docusaurus.config.js": "",
        "docs/a.mdx": (
            "import B from '../../secret.txt';\nimport c from '!!raw-loader!../../secret.txt';\n\n"
            "# T\n\nStart.\n\n<B />\n\n<CodeBlock>{c}</CodeBlock>\n"
        ),
    },
    "Hugo": {"hugo.toml": "", "content/a.md": '# T\n\nStart.\n\n{{< readfile file="../../secret.txt" >}}\n'},
    "MyST": {
        "conf.py": "__import__('pathlib').Path(__file__).with_name('ran').touch()\n",
        "index.md": "# T\n\nStart.\n\n```{include} ../secret.txt\n```\n\n```{literalinclude} ../secret.txt\n```\n",
    },
}


@pytest.mark.parametrize("generator", LEAVING)
def test_includes_that_leave_the_folder_are_refused(tmp_path: Path, generator: str) -> None:
    (tmp_path / "secret.txt").write_text(SECRET)
    folder = write(tmp_path / "book", LEAVING[generator])
    text, why = ingest(folder)
    assert "Start." in text
    assert SECRET not in text
    refused = [one for one in why if one.startswith("refused ")]
    assert refused and all(one.endswith("secret.txt") for one in refused)
    assert not any(place.name == "ran" for place in tmp_path.rglob("*"))  # conf.py was not run


@pytest.mark.parametrize("name", ["t.md", "t.rst", "t.adoc", "t.html"])
def test_file_of_50_megabytes_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / "book", {"index.md": "# T\n\nStart.\n"})
    with (tmp_path / "book" / name).open("wb") as file:
        file.write(b"| a | b |\n|---|---|\n")
        file.truncate(50_000_000)
    text, why = ingest(tmp_path / "book")
    assert "Start." in text
    assert why == ["50.0 MB, over the limit of 20 MB"]


def test_included_csv_of_50_megabytes_is_left_out(tmp_path: Path) -> None:
    pages = {"conf.py": "", "index.rst": "T\n=\n\nStart.\n\n.. csv-table::\n   :file: large.csv\n"}
    folder = write(tmp_path / "book", pages)
    with (folder / "large.csv").open("wb") as file:
        file.write(b"a,b\n")
        file.truncate(50_000_000)
    started = time.process_time()
    text, _ = ingest(folder)
    assert text == "# T\n\nStart."
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize("form", ["docx", "epub", "ipynb"])
def test_document_with_a_table_of_50_megabytes_is_read_or_refused_in_bounded_time(tmp_path: Path, form: str) -> None:
    row = (
        "<tr><td>{0}</td><td>{0}</td></tr>"
        if form == "epub"
        else "<w:tr><w:tc><w:p><w:r><w:t>{0}</w:t></w:r></w:p></w:tc></w:tr>"
    )
    if form == "ipynb":
        row = "| {0} | {0} |\\n"
    cells = [sha256(bytes([number])).hexdigest() for number in range(200)]
    table = "".join(row.format(cell) for cell in cells)
    table *= 50_000_000 // len(table)
    folder = write(tmp_path / "book", {"index.md": "# T\n\nStart.\n"})
    place = folder / f"large.{form}"
    if form == "ipynb":
        place.write_text('{"cells": [{"cell_type": "markdown", "source": "| a | b |\\n| - | - |\\n' + table + '"}]}')
    else:
        with ZipFile(place, "w", ZIP_DEFLATED, compresslevel=1) as archive:
            for name, text in DOCUMENTS[form].items():
                archive.writestr(name, text.format(table))
    started = time.process_time()
    text, why = ingest(folder)
    assert "# T\n\nStart." in text
    assert len(why) <= 1  # read or refused
    assert time.process_time() - started < SECONDS


DOCUMENTS = {
    "docx": {
        "word/document.xml": '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
        "<w:body><w:tbl>{}</w:tbl></w:body></w:document>"
    },
    "epub": {
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>',
        "b.opf": '<package><manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="a"/></spine></package>',
        "a.xhtml": "<html><body><table>{}</table></body></html>",
    },
}
BROKEN = {
    "t.md": "- a\n      - b\n    ```\n> - c\n:::note\n!!! tip\n    - d\n</div><div><li>e<table><td>f\n",
    "t.rst": "T\n=\n\n* a\n    * b\n  .. note::\n c\n\n   - d\n\n+--+\n| e\n+==\n\n.. list-table::\n\n   * - f\n",
    "t.adoc": "= T\n\n* a\n+\n====\n** b\n|===\n|c\n----\nd\n====\n....\ne\n",
    "t.html": "<main><ul><p>a<li><table><tr>b<td><h2>c<dl><dd>d</ul></table><dt>e<blockquote><pre>f</main>",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_nesting_keeps_the_text(tmp_path: Path, name: str) -> None:
    text, why = ingest(write(tmp_path / "book", {name: BROKEN[name]}))
    assert why == []
    wanted = {word for word in "abcdef" if re.search(rf"\b{word}\b", re.sub("<[^>]*>", "<", BROKEN[name]))}
    assert wanted >= set("abcde")
    assert wanted <= set(re.findall(r"\w+", text))
