"""Builds books with the real MkDocs, VitePress, Docusaurus and Hugo, to compare their HTML with our Markdown reader.

Neither the books nor the generators are part of this repository. `READERS_BOOKS` is a folder with checkouts of the
books, `READERS_MKDOCS` the program in an environment with mkdocs-material, mdx-include and markdown-include-variants,
`READERS_NODE` a folder whose `node_modules` contain VitePress and Docusaurus, and `READERS_HUGO` the program. Missing
books and generators are skipped. Only the sidebars of a book's own configuration are used: the rest needs plug-ins and
themes.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.readers import markdown_oracle
from bench.readers.sphinx_site import CACHE
from chapterverse.ingestion.document import Generator

_MKDOCS = """site_name: book
docs_dir: {docs}
theme: {{name: material}}
plugins: []
markdown_extensions:
  - abbr
  - admonition
  - attr_list
  - def_list
  - footnotes
  - md_in_html
  - tables
  - toc: {{permalink: false}}
  - pymdownx.arithmatex: {{generic: true}}
  - pymdownx.betterem
  - pymdownx.blocks.admonition
  - pymdownx.blocks.details
  - pymdownx.blocks.tab: {{alternate_style: true}}
  - pymdownx.caret
  - pymdownx.critic
  - pymdownx.details
  - pymdownx.highlight
  - pymdownx.inlinehilite
  - pymdownx.keys
  - pymdownx.mark
  - pymdownx.superfences
  - pymdownx.tabbed: {{alternate_style: true}}
  - pymdownx.tasklist
  - pymdownx.tilde
  - pymdownx.emoji: {{emoji_index: !!python/name:material.extensions.emoji.twemoji '',
      emoji_generator: !!python/name:material.extensions.emoji.to_svg ''}}
  - {includes}
"""
_SNIPPETS = 'pymdownx.snippets: {base_path: [".", "docs"]}'
_VARIANTS = "markdown_include_variants\n  - mdx_include: {base_path: .}"
_VITEPRESS = r"""const asset = /\.(png|jpe?g|svg|gif|webp|mp4|webm|pdf|ulg|zip|csv|xml|yml|bin|px4)$/i
const none = { name: 'no-assets', enforce: 'pre',
  resolveId(id) { if (asset.test(id)) return '\0none' }, load(id) { if (id === '\0none') return 'export default ""' } }
const sidebar = SIDEBAR
export default { title: 'x', ignoreDeadLinks: true, themeConfig: { sidebar }, vite: { plugins: [none] },
  vue: { template: { compilerOptions: { isCustomElement: (tag) => tag.includes('-') } } } }
"""
_SIDEBAR = re.compile(r"^export const sidebar\b[^=]*= (\{.*?^\})", re.DOTALL | re.MULTILINE)
_DOCUSAURUS = """module.exports = { title: 'x', url: 'https://book.test', baseUrl: '/', onBrokenLinks: 'ignore',
  onBrokenAnchors: 'ignore', themes: ['@docusaurus/theme-classic'],
  plugins: [['@docusaurus/plugin-content-docs', {routeBasePath: '/', path: 'docs', sidebarPath: './sidebars.ts'}]],
  markdown: {format: 'detect', hooks: {onBrokenMarkdownImages: 'ignore', onBrokenMarkdownLinks: 'ignore'}} };
"""
_STUB = "import React from 'react'; export default function C(p) { return <div>{p.children}</div> }"
_STUBS = {
    ".json": "{}",
    ".svg": '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>',
    ".ts": "export default {}",
}
_HUGO = """baseURL = "https://book.test/"
disableKinds = ["taxonomy", "term", "RSS", "sitemap"]
[markup.goldmark.renderer]
unsafe = true
[markup.highlight]
codeFences = false
[markup.goldmark.extensions.typographer]
disable = true
[markup.goldmark.renderHooks.link]
useEmbedded = "always"
"""
_HUGO_PAGE = "<html><body><main><h1>{{ .Title }}</h1>{{ .Content }}</main></body></html>"


@dataclass(frozen=True, slots=True)
class MarkdownBook:
    """A book whose pages are built by one of the generators."""

    name: str
    folder: str  # name of its checkout in READERS_BOOKS
    generator: Generator
    dialect: markdown_oracle.Dialect
    docs: str  # the folder of the pages in the checkout
    parts: tuple[str, ...] = ()  # the pages that are built; empty: all


BOOKS = (
    MarkdownBook("material", "material", "mkdocs", markdown_oracle.MKDOCS, "docs"),
    MarkdownBook("pydantic", "pydantic", "mkdocs", markdown_oracle.MKDOCS, "docs"),
    MarkdownBook("mkdocs", "mkdocs", "mkdocs", markdown_oracle.MKDOCS, "docs"),
    MarkdownBook("httpx", "httpx", "mkdocs", markdown_oracle.MKDOCS, "docs"),
    MarkdownBook("fastapi", "fastapi", "mkdocs", markdown_oracle.MKDOCS, "docs/en/docs"),
    MarkdownBook(
        "px4", "px4", "vitepress", markdown_oracle.VITEPRESS, "en",
        ("config", "concept", "middleware", "dev_setup", "ros2", "companion_computer", "sensor", "flight_modes_mc"),
    ),
    MarkdownBook(
        "vue", "vue", "vitepress", markdown_oracle.VITEPRESS, "src",
        ("guide", "api", "about", "style-guide", "glossary"),
    ),
    MarkdownBook("docusaurus", "docusaurus", "docusaurus", markdown_oracle.DOCUSAURUS, "website/docs"),
    MarkdownBook("prometheus", "prometheus", "hugo", markdown_oracle.HUGO, "docs"),
)  # fmt: skip


def available(book: MarkdownBook) -> bool:
    """Whether the book and its generator are available."""
    tool = {"mkdocs": "READERS_MKDOCS", "hugo": "READERS_HUGO"}.get(book.generator, "READERS_NODE")
    books = os.environ.get("READERS_BOOKS", "")
    return bool(books and os.environ.get(tool)) and (Path(books) / book.folder / book.docs).is_dir()


def build(book: MarkdownBook) -> tuple[Path, Path]:
    """Build the book. Return the folder that our readers read, and the site that the generator built from it."""
    makers: dict[Generator, Callable[[MarkdownBook, Path], Path]] = {
        "mkdocs": _mkdocs,
        "vitepress": _vitepress,
        "docusaurus": _docusaurus,
        "hugo": _hugo,
    }
    place = CACHE / "markdown" / book.name
    done = place / ".built"
    site = Path(done.read_text()) if done.is_file() else None
    if site is None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        site = makers[book.generator](book, place)
        done.write_text(str(site))
    return place, site


def _checkout(book: MarkdownBook) -> Path:
    return Path(os.environ["READERS_BOOKS"]) / book.folder


def _run(*command: str | Path, at: Path, check: bool = True) -> None:
    subprocess.run([*map(str, command)], cwd=at, check=check, stdout=subprocess.DEVNULL)


def _mkdocs(book: MarkdownBook, place: Path) -> Path:
    shutil.copytree(_checkout(book), place, dirs_exist_ok=True)
    project, docs = (place / book.docs).parent, Path(book.docs).name
    for page in (place / book.docs).rglob("*.md"):
        text = page.read_text("utf-8")
        text = re.sub(r"^template:.*$", "", text, flags=re.MULTILINE)  # a template of the book's own theme
        text = re.sub(
            r"^::: .*\n(?:[ ]{4}.*\n|\n)*", "\n", f"{text}\n", flags=re.MULTILINE
        )  # docstrings, which need a plug-in and the source code
        text = re.sub(r"^(#.*)\[([^\[\]\n]+)\]\[[\w.-]+\]", r"\1\2", text, flags=re.MULTILINE)  # as above
        # files that are not in the checkout
        page.write_text(re.sub(r"^\{\* \.\./\.\./fastapi/.*$", "", text, flags=re.MULTILINE))
    includes = _VARIANTS if book.name == "fastapi" else _SNIPPETS
    (project / "mkdocs.yml").write_text(_MKDOCS.format(docs=docs, includes=includes))
    _run(os.environ["READERS_MKDOCS"], "build", "-q", at=project)
    return project / "site"


def _vitepress(book: MarkdownBook, place: Path) -> Path:
    below = place / book.docs if book.docs != "src" else place
    for part in book.parts:
        shutil.copytree(_checkout(book) / book.docs / part, below / part)
    for page in place.rglob("*.md"):
        page.write_text("\n".join(_without_scripts(page.read_text("utf-8"))))
    (place / ".vitepress").mkdir()
    config = _checkout(book) / ".vitepress/config.ts"
    sidebar = _SIDEBAR.search(config.read_text("utf-8")) if config.is_file() else None
    items = sidebar[1].replace("<", "&lt;") if sidebar else "{}"  # the default theme shows names as HTML
    (place / ".vitepress/config.mjs").write_text(_VITEPRESS.replace("SIDEBAR", items))
    _link_modules(place)
    _run("npx", "vitepress", "build", ".", at=place)
    return place / ".vitepress/dist"


def _without_scripts(text: str) -> list[str]:
    """Lines of a page without scripts and styles, which import missing files. Those in code fences are kept."""
    kept, fence, skipping = [], "", False
    for line in text.split("\n"):
        if not skipping and (mark := re.match(r"\s*(`{3,}|~{3,})", line)):
            closes = fence and line.strip().startswith(fence) and not line.strip().strip("`~")
            fence = "" if closes else fence or mark[1]
        skipping = skipping or (not fence and bool(re.match(r"<(script|style)\b", line)))
        if not skipping:
            kept.append(line)
        elif re.search(r"</(script|style)>", line):
            skipping = False
    return kept


def _docusaurus(book: MarkdownBook, place: Path) -> Path:
    shutil.copytree(_checkout(book) / book.docs, place / "docs")
    shutil.copy((_checkout(book) / book.docs).with_name("sidebars.ts"), place)
    (place / "docusaurus.config.js").write_text(_DOCUSAURUS)
    (place / "babel.config.js").write_text(
        "module.exports = {presets: [require.resolve('@docusaurus/core/lib/babel/preset')]};"
    )
    (place / "package.json").write_text('{"name": "site", "private": true}')
    for page in (place / "docs").rglob("*.mdx"):
        text = page.read_text("utf-8")
        for path in re.findall(r"@site/([a-z][\w/.-]*\w)", text):
            stub = place / (path if Path(path).suffix else f"{path}.js")
            if path.startswith(("src/", "static/", "sidebars.")) and not stub.exists():
                stub.parent.mkdir(parents=True, exist_ok=True)
                stub.write_text(_STUBS.get(stub.suffix, _STUB))
        page.write_text(re.sub(r"^import .*raw-loader.*\n", "", text, flags=re.MULTILINE))
    _link_modules(place)
    _run("npx", "docusaurus", "build", ".", at=place, check=False)  # pages that need the site's own code are left out
    return place / "build"


def _link_modules(place: Path) -> None:
    (place / "node_modules").symlink_to(Path(os.environ["READERS_NODE"]) / "node_modules")


def _hugo(book: MarkdownBook, place: Path) -> Path:
    shutil.copytree(_checkout(book) / book.docs, place / "content")
    for page in (place / "content").rglob("index.md"):
        page.rename(page.with_name("_index.md"))
    (place / "hugo.toml").write_text(_HUGO)
    (place / "layouts/_default").mkdir(parents=True)
    for name in ("single", "list"):
        (place / f"layouts/_default/{name}.html").write_text(_HUGO_PAGE)
    _run(os.environ["READERS_HUGO"], at=place)
    return place / "public"
