"""Includes stay inside the folder and end in bounded time."""

import time
from pathlib import Path

import pytest

from chapterverse.ingestion import inclusion
from chapterverse.ingestion.document import Document, Format, Generator, Tree
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.readers import read
from chapterverse.ingestion.sources.folder import Folder
from tests.ingestion.sources.site import collect

SECRET = "nobody may read this"


@pytest.fixture
def book(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text(SECRET)
    root = tmp_path / "book"
    (root / "docs/parts").mkdir(parents=True)
    (root / "src").mkdir()
    (root / ".env").write_text(SECRET)
    (root / "src/x.py").write_text("# --8<-- [start:one]\na = 1\n# --8<-- [end:one]\nb = 2\nc = 3\n")
    (root / "src/y.rs").write_text(
        "// ANCHOR: two\nfn main() {\n# hidden\n    go();\n}\n// ANCHOR_END: two\nfn other() {}\n"
    )
    (root / "src/z.ts").write_text("let a\n// #region part\nlet b\n// #endregion part\n")
    (root / "src/w.ts").write_text("// #region part\nlet b\n// #endregion\nlet secret\n")
    (root / "docs/parts/p.md").write_text("---\ntitle: part\n---\nIncluded *prose*.\n")
    return root


def parts_of(
    book: Path, text: str, generator: Generator = "mkdocs", form: Format = "markdown"
) -> list[tuple[str, str]]:
    tree = Tree(str(book / "docs"), generator=generator, within=str(book))
    path = "page.mdx" if form == "mdx" else "page.md"
    document = Document("book/page.md", path, "book", form, f"Begin.\n\n{text}".encode(), tree=tree)
    (draft,) = read(document)
    return [(part.kind, part.text) for part in draft.parts[1:]]


@pytest.mark.parametrize(
    ("generator", "text", "code"),
    [
        ("mkdocs", '```python\n--8<-- "src/x.py:one"\n```', "a = 1"),
        ("mkdocs", '```python\n--8<-- "src/x.py:2:2"\n```', "a = 1"),
        ("mkdocs", "```python\n--8<--\nsrc/x.py\n--8<--\n```", "a = 1\nb = 2\nc = 3"),
        ("mkdocs", "{* ../src/x.py ln[4:4] hl[1] *}", "# Code above omitted 👆\n\nb = 2\n\n# Code below omitted 👇"),
        ("mkdocs", "{* ../src/x.py ln[4:²] *}", "# Code above omitted 👆\n\nb = 2\nc = 3"),
        ("mkdocs", "```python\n{!../src/x.py!}\n```", "a = 1\nb = 2\nc = 3"),
        ("mkdocs", '```\n;--8<-- "src/x.py"\n```', '--8<-- "src/x.py"'),
        ("mdbook", "```rust\n{{#include ../src/y.rs:two}}\n```", "fn main() {\n    go();\n}"),
        ("mdbook", "```rust\n{{#rustdoc_include ../src/y.rs:2:2}}\n```", "fn main() {"),
        ("mdbook", "```md\n\\{{#include ../src/y.rs}}\n```", "{{#include ../src/y.rs}}"),
        ("vitepress", "<<< @/../src/z.ts#part{ts}", "let b"),
        ("vitepress", "<<< ../src/z.ts{3}", "let a\nlet b"),
        ("vitepress", "<<< ../src/w.ts#part{ts}", "let b"),
        ("hugo", '{{% code_sample file="../src/x.py" %}}', "a = 1\nb = 2\nc = 3"),
    ],
)
def test_code_is_included(book: Path, generator: Generator, text: str, code: str) -> None:
    assert parts_of(book, text, generator) == [("code", code)]


@pytest.mark.parametrize(
    ("generator", "text"),
    [
        ("mkdocs", '--8<-- "parts/p.md"'),
        ("mdbook", "{{#include parts/p.md}}"),
        ("vitepress", "<!--@include: ./parts/p.md-->"),
        ("hugo", '{{% include "parts/p.md" %}}'),
        ("hugo", '{{< readfile file="parts/p.md" >}}'),
    ],
)
def test_prose_is_included(book: Path, generator: Generator, text: str) -> None:
    (kind, words) = parts_of(book, text, generator)[-1]
    assert kind == "paragraph"
    assert "Included" in words and "prose" in words


@pytest.mark.parametrize(
    "line",
    [
        "region: us-east-1",
        '  region = "us-east-1"',
        "- region: eu",
        "Region is where.",
        "Region | Endpoint",
        "# Region",
    ],
)
def test_line_about_a_region_is_no_section_mark(book: Path, line: str) -> None:
    (book / "docs/r.txt").write_text(f"a\n{line}\nb\n")
    assert parts_of(book, '```\n--8<-- "r.txt"\n```') == [("code", f"a\n{line}\nb")]


@pytest.mark.parametrize(
    "mark",
    ["// #{}region x", "// {}region x", "#{}region x", "# {}region", "<!-- #{}region x -->", "/* #{}region x */",
     "#pragma {}region x", "-- #{}region x", "::#{}region x", "REM #{}region x", "(* #{}region x *)"],
)  # fmt: skip
def test_section_marks_of_all_languages_are_left_out(book: Path, mark: str) -> None:
    (book / "docs/r.txt").write_text(f"a\n  {mark.format('')}\nb\n{mark.format('end')}\n")
    assert parts_of(book, '```\n--8<-- "r.txt"\n```') == [("code", "a\nb")]


def test_inline_code_in_three_backticks_opens_no_fence(book: Path) -> None:
    kinds = parts_of(book, "```inline``` code first.\n\n<!--@include: ./parts/p.md-->", "vitepress")
    assert "Included" in kinds[-1][1]


def test_mdx_partial_is_included(book: Path) -> None:
    (book / "docs/_part.mdx").write_text("export const a = 1;\n\nA **partial** of {props.name} `code`.\n\n<Inner />\n")
    text = (
        "import Part from './_part.mdx';\nimport code from '!!raw-loader!../src/x.py';\n"
        "import Out from '../../secret.txt';\n\n<Part name='x' />\n\n"
        '<CodeBlock language="py">{code}</CodeBlock>\n\n<Out />\n\n'
        "<CodeBlock>{`x\ny`}</CodeBlock>"
    )
    found = parts_of(book, text, "docusaurus", "mdx")
    assert [kind for kind, _ in found] == ["paragraph", "code", "code"]
    assert [code for kind, code in found if kind == "code"] == [
        "# --8<-- [start:one]\na = 1\n# --8<-- [end:one]\nb = 2\nc = 3",
        "x\ny",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "../../secret.txt",
        "../../../../../../etc/passwd",
        "/etc/passwd",
        "../.env",
        "link.txt",
        "%2e%2e/%2e%2e/secret.txt",
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        '--8<-- "{}"',
        "{{{{#include {}}}}}",
        "<<< {}",
        "<!--@include: {}-->",
        '{{{{% include "{}" %}}}}',
        "{{!{}!}}",
        "{{* {} *}}",
    ],
)
def test_nothing_outside_of_the_folder_is_opened(book: Path, name: str, form: str) -> None:
    (book / "docs/link.txt").symlink_to(book.parent / "secret.txt")
    assert SECRET not in str(parts_of(book, f"{form.format(name)}\n\n```\n{form.format(name)}\n```\n\nend"))
    assert "root:" not in str(parts_of(book, form.format(name) + "\n\nend"))


def test_include_without_a_file_is_left_out(book: Path) -> None:
    assert parts_of(book, "{{#include :two}}\n\nend", "mdbook") == [("paragraph", "end")]


def test_include_through_a_circular_link_is_left_out(book: Path) -> None:
    (book / "docs/loop").symlink_to("loop")
    assert parts_of(book, '--8<-- "loop/x.md"\n\nend') == [("paragraph", "end")]


def test_circular_includes_end(book: Path) -> None:
    (book / "docs/page.md").write_text('x\n\n--8<-- "page.md"\n')
    (book / "docs/a.md").write_text('A\n\n--8<-- "b.md"\n')
    (book / "docs/b.md").write_text('B\n\n--8<-- "a.md"\n')
    assert [text for _, text in parts_of(book, '--8<-- "a.md"\n\n--8<-- "page.md"\n\nend')] == ["A", "B", "end"]


def test_nested_includes_are_limited(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for depth in range(8):
        (book / f"docs/{depth}.md").write_text(f'--8<-- "{depth + 1}.md"\n\n' * 50)
    (book / "docs/8.md").write_text("x " * 10_000)
    start = time.process_time()
    parts_of(book, '--8<-- "0.md"\n\nend')
    assert time.process_time() - start < 5
    monkeypatch.setattr(inclusion, "MAX_BYTES", 10)
    assert parts_of(book, '--8<-- "8.md"\n\nend') == [("paragraph", "end")]


async def test_surroundings_change_if_an_included_file_changes(book: Path) -> None:
    (book / "mkdocs.yml").write_text("site_name: x")
    (book / "docs/page.md").write_text('# P\n\n--8<-- "parts/p.md"\n')
    (book / "docs/plain.md").write_text("# Q\n\nText.")
    before = {
        one.path: one.surroundings
        for one in (await collect(Folder(book, SourceOptions()).documents({}))).documents.values()
    }
    (book / "docs/parts/p.md").write_text("Changed, and longer.")
    after = {
        one.path: one.surroundings
        for one in (await collect(Folder(book, SourceOptions()).documents({}))).documents.values()
    }
    assert before["page.md"] != after["page.md"]
    assert before["plain.md"] == after["plain.md"]
