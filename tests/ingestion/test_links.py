"""Targets of the links of a page."""

from pathlib import Path

import pytest

from chapterverse.ingestion import links
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, Generator, Tree
from chapterverse.ingestion.links import Links, page_address
from chapterverse.ingestion.readers import read
from tests.ingestion.sources.test_folder import write

BASE = "https://example.org/docs"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    links.forget()
    write(tmp_path, "index.md", "guide/index.md", "guide/01-setup.md", "guide/use.mdx", "api/ref.md", "img/x.png")
    return tmp_path


def resolver(root: Path, generator: Generator, path: str = "guide/01-setup.md", base: str = BASE) -> Links:
    tree = Tree(str(root), base, "book", generator)
    url = page_address(tree, path)
    return Links(Document(url, path, "book", "markdown", b"", tree=tree), url)


@pytest.mark.parametrize(
    ("generator", "addresses"),
    [
        ("docusaurus", {"use.mdx": "guide/use", "../api/ref.md#x": "api/ref#x", "api/ref.md": "api/ref"}),
        ("mkdocs", {"use.mdx": "guide/use/", "../../api/ref/": "api/ref/", "../api/ref.md?a=1#x": "api/ref/?a=1#x"}),
        ("mdbook", {"use.mdx": "guide/use.html", "use.html": "guide/use.html", "index.md": "guide/index.html"}),
        ("vitepress", {"./use": "guide/use.html", "/api/ref": "api/ref.html", "/": ""}),
        ("hugo", {"use.mdx": "guide/use/", "/api/ref.md": "api/ref/", "../use": "guide/use/"}),
        ("starlight", {"/docs/api/ref/": "api/ref/", "../../api/ref/": "api/ref/"}),
        ("plain", {"use.mdx": "guide/use.mdx", "../img/x.png": "img/x.png", "gone.md": "guide/gone.md"}),
    ],
)
def test_relative_link_resolves_to_the_address_of_the_page(
    root: Path, generator: Generator, addresses: dict[str, str]
) -> None:
    found = resolver(root, generator)
    assert {target: found.resolve(target) for target in addresses} == {
        target: f"{BASE}/{address}" for target, address in addresses.items()
    }


def test_link_without_an_extension_is_relative_to_the_page(root: Path) -> None:
    write(root, "guide.md", "docs/guide.md", "docs/pod.md")
    found = resolver(root, "hugo", "docs/pod.md")
    assert found.resolve("../guide/") == f"{BASE}/docs/guide/"
    assert found.resolve("../guide.md") == f"{BASE}/guide/"


def test_mdbook_links_to_another_book_lead_to_its_html(root: Path) -> None:
    found = resolver(root, "mdbook")
    assert found.resolve("../../rover/arm.md#grip") == "https://example.org/rover/arm.html#grip"


def test_anchors_queries_and_absolute_targets_are_resolved(root: Path) -> None:
    found = resolver(root, "docusaurus")
    assert found.resolve("#part") == f"{BASE}/guide/setup#part"
    assert found.resolve("?q=1") == f"{BASE}/guide/setup?q=1"
    assert found.resolve("path:api/ref.md#x") == f"{BASE}/api/ref#x"
    assert found.resolve("//cdn.example/x") == "https://cdn.example/x"
    assert found.resolve("mailto:a@b.test") == "mailto:a@b.test"
    assert found.resolve("https://b.test/x#y") == "https://b.test/x#y"
    assert found.resolve("/community") == "https://example.org/community"  # another part of the site


@pytest.mark.parametrize(
    "target",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "path:../x",
        "",
        "x" * 3000,
        "https://[HOST]/x.png",
        "//[IP]:80/",
    ],
)
def test_unsafe_or_invalid_target_is_dropped(root: Path, target: str) -> None:
    assert resolver(root, "plain").resolve(target) == ""


def test_links_without_a_base_url_stay_inside_the_folder(root: Path) -> None:
    write(root, "static/logo.svg")
    found = resolver(root, "plain", base="")
    assert found.resolve("use.mdx#x") == "book/guide/use.mdx#x"
    assert found.resolve("../../../etc/passwd") == found.resolve("gone.md") == ""
    assert found.resolve("/logo.svg") == found.resolve("@site/static/logo.svg") == "book/static/logo.svg"
    site = resolver(root, "docusaurus")
    assert site.resolve("@site/static/logo.svg") == "https://example.org/logo.svg"
    for name in ("static-hosting", "static/use"):
        assert site.resolve(f"@site/docs/{name}.mdx") == f"{BASE}/{name}"


def test_slug_is_used_for_the_page_and_for_links_to_it(root: Path) -> None:
    (root / "api/ref.md").write_text("---\nslug: /api/@me/ref\n---\n# R\n\ntext [back](../guide/use.mdx)")
    assert resolver(root, "docusaurus").resolve("../api/ref.md") == f"{BASE}/api/@me/ref"
    tree = Tree(str(root), BASE, "book", "docusaurus")
    data = (root / "api/ref.md").read_bytes()
    document = Document(page_address(tree, "api/ref.md"), "api/ref.md", "book", "markdown", data, tree=tree)
    page = compose(document, read(document)[0])
    assert page.url == f"{BASE}/api/@me/ref"
    assert [mark.target for mark in page.marks] == [f"{BASE}/guide/use"]


@pytest.mark.parametrize(
    ("generator", "path", "front", "address"),
    [
        ("docusaurus", "guide/01-setup.md", "id: start", "guide/start"),
        ("docusaurus", "guide/index.md", "id: home", "guide/"),
        ("docusaurus", "guide/index.md", "slug: overview", "guide/overview"),
        ("docusaurus", "2.0-release.md", "slug: release", "release"),
        ("docusaurus", "index.md", "slug: /", ""),
        ("docusaurus", "guide/use.mdx", "slug: no slug?", "guide/use"),
        ("hugo", "guide/use.md", "slug: usage", "guide/usage/"),
        ("hugo", "guide/use.md", "id: usage", "guide/use/"),
        ("starlight", "guide/use.md", "slug: usage", "usage/"),
        ("mkdocs", "guide/use.md", "id: 42", "guide/use/"),
        ("vitepress", "guide/use.md", "slug: usage", "guide/use.html"),
    ],
)
def test_slug_follows_the_rules_of_the_generator(
    root: Path, generator: Generator, path: str, front: str, address: str
) -> None:
    (root / path).write_text(f"\ufeff---\n{front}\n---\n# R\n\ntext", encoding="utf-8")
    tree = Tree(str(root), BASE, "book", generator)
    document = Document(page_address(tree, path), path, "book", "markdown", (root / path).read_bytes(), tree=tree)
    assert compose(document, read(document)[0]).url == f"{BASE}/{address}"
    assert resolver(root, generator, "api/ref.md").resolve(f"path:{path}") == f"{BASE}/{address}"


def test_marks_have_resolved_targets_and_unsafe_links_are_text(root: Path) -> None:
    text = b"# T\n\n[a](use.mdx) [b](javascript:x) ![p](../img/x.png)\n\n![alone](../img/x.png)\n"
    tree = Tree(str(root), "", "book", "plain")
    document = Document("book/guide/t.md", "guide/t.md", "book", "markdown", text, tree=tree)
    page = compose(document, read(document)[0])
    assert [(mark.kind, mark.target) for mark in page.marks] == [
        ("link", "book/guide/use.mdx"),
        ("image", "book/img/x.png"),
    ]
    assert [block.info for block in page.blocks if block.kind == "image"] == ["book/img/x.png"]


def test_links_of_a_web_page_are_relative_to_its_address() -> None:
    found = Links(Document("https://b.test/a/b", "a/b", "s", "html", b""), "https://b.test/a/b")
    assert found.resolve("../c#d") == "https://b.test/c#d"
    assert found.resolve("https://[HOST]/x.png") == found.resolve("//[HOST]/x.png") == ""
    assert found.resolve("path:x.md") == ""
