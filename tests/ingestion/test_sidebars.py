"""The navigation of MkDocs, mdBook, Docusaurus, VitePress and Starlight."""

from pathlib import Path

import pytest

from chapterverse.ingestion.document import Generator
from chapterverse.ingestion.navigation import NavigationEntry, navigation
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.sources.folder import Folder
from tests.ingestion.sources.site import collect
from tests.ingestion.sources.test_folder import write


def listed(root: Path, generator: Generator) -> list[str]:
    return [entry.path for entry in navigation(root, generator)]


def test_mkdocs_nav_gives_order_titles_and_parents(tmp_path: Path) -> None:
    write(tmp_path / "docs", "index.md", "z.md", "a.md", "guide/index.md", "guide/b.md")
    (tmp_path / "mkdocs.yml").write_text(
        "site_name: x\nnav:\n  - index.md\n  - Zebra: z.md\n  - Guide:\n    - guide/index.md\n    - Bee: guide/b.md\n"
        "  - Elsewhere: https://example.org/\n  - Gone: gone.md\n"
        "markdown_extensions:\n  - x: !!python/name:material.y ''\n  - y: !ENV [A, b]\n"
    )
    assert navigation(tmp_path / "docs", "mkdocs") == [
        NavigationEntry("index.md"),
        NavigationEntry("z.md", "Zebra"),
        NavigationEntry("guide/index.md", "", ("Guide",)),
        NavigationEntry("guide/b.md", "Bee", ("Guide",)),
    ]


def test_a_folder_in_mkdocs_nav_is_a_chapter_in_the_order_of_the_links_of_its_index(tmp_path: Path) -> None:
    write(tmp_path / "docs", "index.md", "dev/api.md", "dev/more/x.md", "dev/themes.md", "dev/unlisted.md")
    (tmp_path / "docs/dev/README.md").write_text("# Dev\n\n- [Themes](themes.md)\n- [API](./api.md#top)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\nnav:\n  - index.md\n  - Developer Guide: dev/\n")
    chapter = ("Developer Guide",)
    assert navigation(tmp_path / "docs", "mkdocs") == [
        NavigationEntry("index.md"),
        NavigationEntry("dev/README.md", "", chapter),
        NavigationEntry("dev/themes.md", "", chapter),
        NavigationEntry("dev/api.md", "", chapter),
        NavigationEntry("dev/unlisted.md", "", chapter),
        NavigationEntry("dev/more/x.md", "", chapter),
    ]


def test_mkdocs_without_nav_sorts_by_file_name(tmp_path: Path) -> None:
    write(tmp_path / "docs", "b/body.md", "b/body-updates.md", "b/README.md", "Z.md", "index.md", "a.md", "_x.md")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\n")
    assert listed(tmp_path / "docs", "mkdocs") == [
        "index.md",
        "Z.md",
        "_x.md",
        "a.md",
        "b/README.md",
        "b/body-updates.md",
        "b/body.md",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "nav: [",
        "nav: 3",
        "nav:\n" + "  - " * 500 + "x",
        "a: &a [1]\nnav: [*a, *a]",
        "nav: !!python/object/apply:os.system [ls]",
        "",
    ],
)
def test_broken_configuration_is_ignored(tmp_path: Path, text: str) -> None:
    write(tmp_path / "docs", "index.md")
    (tmp_path / "mkdocs.yml").write_text(text)
    assert navigation(tmp_path / "docs", "mkdocs") in ([], [NavigationEntry("index.md")])


def test_mdbook_summary_gives_order_titles_and_parents(tmp_path: Path) -> None:
    write(tmp_path, "book.toml", "src/intro.md", "src/b/README.md", "src/b/two.md", "src/a.md", "src/end.md")
    (tmp_path / "src/SUMMARY.md").write_text(
        "# Summary\n\n[Introduction](intro.md)\n\n# Part I\n\n- [Bee](b/README.md)\n    - [Two](./b/two.md)\n"
        "    - [Draft]()\n- [A](a.md)\n\n---\n\n[The end](end.md)\n"
    )
    assert navigation(tmp_path / "src", "mdbook") == [
        NavigationEntry("intro.md", "Introduction"),
        NavigationEntry("b/README.md", "Bee", ("Part I",)),
        NavigationEntry("b/two.md", "Two", ("Part I", "Bee")),
        NavigationEntry("a.md", "A", ("Part I",)),
        NavigationEntry("end.md", "The end"),  # a chapter after the numbered ones is in no part
    ]


def test_mdbook_summary_is_read_as_markdown(tmp_path: Path) -> None:
    """Chapters with markup, spaces or brackets, and parts with an underline; a comment names no chapter."""
    names = ("pre", "fore", "a", "b", "c", "d (1)", "e", "f", "off")
    write(tmp_path, *(f"{name}.md" for name in names))
    (tmp_path / "SUMMARY.md").write_text(
        "Summary\n=======\n\n[Preface](pre.md)\n[Foreword](fore.md)\n\nPart I\n------\n\n"
        "- [A `code` \\[x\\]](a.md)\n- [Draft]()\n  - **[B](b.md)** (new)\n\n    See also [A](a.md).\n"
        '<!--\n- [Off](off.md)\n-->\n- [C](<c.md> "The third")\n\n***\n\n# Part *II*\n\n'
        "* [D](d%20(1).md)\n* [E][e]\n\n[F](f.md)\n\n[e]: e.md\n"
    )
    assert navigation(tmp_path, "mdbook") == [
        NavigationEntry("pre.md", "Preface"),
        NavigationEntry("fore.md", "Foreword"),
        NavigationEntry("a.md", "A code [x]", ("Part I",)),
        NavigationEntry("b.md", "B", ("Part I", "Draft")),
        NavigationEntry("c.md", "C", ("Part I",)),
        NavigationEntry("d (1).md", "D", ("Part II",)),
        NavigationEntry("e.md", "E", ("Part II",)),
        NavigationEntry("f.md", "F"),
    ]


def test_mdbook_prefix_chapter_has_no_chapters(tmp_path: Path) -> None:
    write(tmp_path, "intro.md", "a.md", "end.md")
    (tmp_path / "SUMMARY.md").write_text("# Summary\n\n[Introduction](intro.md)\n\n- [A](a.md)\n\n[The end](end.md)\n")
    assert [entry.parents for entry in navigation(tmp_path, "mdbook")] == [(), (), ()]


def test_mdbook_separator_right_below_a_chapter_is_no_underline(tmp_path: Path) -> None:
    """For Markdown the line above `---` is a heading."""
    write(tmp_path, "intro.md", "a.md", "end.md")
    (tmp_path / "SUMMARY.md").write_text(
        "# Summary\n\n[Introduction](intro.md)\n---\n- [A](a.md)\n\n[The end](end.md)\n---\n"
    )
    assert navigation(tmp_path, "mdbook") == [
        NavigationEntry("intro.md", "Introduction"),
        NavigationEntry("a.md", "A"),
        NavigationEntry("end.md", "The end"),
    ]


async def test_pages_follow_the_navigation(tmp_path: Path) -> None:
    write(tmp_path / "book", "src/a.md", "src/b.md", "src/c.md")
    (tmp_path / "book/book.toml").write_text('[book]\ntitle = "x"\n')
    (tmp_path / "book/src/SUMMARY.md").write_text("- [C](c.md)\n- [A](a.md)\n")
    found = await collect(Folder(tmp_path / "book", SourceOptions(base_url="https://b.test/")).documents({}))
    assert {one.path: (one.url, one.place) for one in found.documents.values()} == {
        "a.md": ("https://b.test/a.html", 1),
        "c.md": ("https://b.test/c.html", 0),
    }
    assert set(found.skipped.values()) == {"not in SUMMARY.md"}


def test_docusaurus_sidebars_give_the_order(tmp_path: Path) -> None:
    write(tmp_path / "docs", "intro.mdx", "02-guide/01-setup.md", "02-guide/use.md", "more/x.md", "more/_part.md")
    (tmp_path / "docs/02-guide/use.md").write_text("---\nid: using\n---\ntext")
    (tmp_path / "sidebars.js").write_text(
        "// 'more/x' in a comment\nmodule.exports = { docs: ['guide/using', {type: 'category', label: 'intro',\n"
        "  items: [{type: 'doc', id: 'intro', label: \"Hello\"}, {type: 'autogenerated', dirName: 'more'}]},\n"
        "  'guide/setup'] };"
    )
    assert listed(tmp_path / "docs", "docusaurus") == [
        "02-guide/use.md",
        "intro.mdx",
        "more/x.md",
        "02-guide/01-setup.md",
    ]


def test_docusaurus_autogenerated_folder_is_sorted_by_position(tmp_path: Path) -> None:
    write(tmp_path / "docs", "api/a.md", "api/b.md", "api/c/README.md", "api/c/x.md", "api/c/y.md", "api/d/z.md")
    (tmp_path / "docs/api/b.md").write_text("---\nsidebar_position: 0\n---\ntext")
    (tmp_path / "docs/api/c/y.md").write_text("---\nsidebar_position: 1\n---\ntext")
    (tmp_path / "docs/api/c/_category_.yml").write_text("position: 2")
    (tmp_path / "docs/api/d/_category_.json").write_text('{"position": 1}')
    (tmp_path / "sidebars.js").write_text("module.exports = { docs: [{type: 'autogenerated', dirName: 'api'}] };")
    wanted = ["api/b.md", "api/d/z.md", "api/c/README.md", "api/c/y.md", "api/c/x.md", "api/a.md"]
    assert listed(tmp_path / "docs", "docusaurus") == wanted


def test_vitepress_and_starlight_sidebars_give_the_order(tmp_path: Path) -> None:
    write(tmp_path / "v", "index.md", "guide/b.md", "guide/a.md", "guide/index.md")
    (tmp_path / "v/.vitepress").mkdir()
    (tmp_path / "v/.vitepress/config.mts").write_text(
        "export default { themeConfig: { nav: [{link: '/guide/a'}], sidebar: { '/guide/': [{ text: 'G', items: [\n"
        "{ text: 'B', link: '/guide/b' }, { text: 'Home', link: '/guide/' },\n"
        "{ text: 'A', link: '/guide/a.html' }] }] } } }"
    )
    assert listed(tmp_path / "v", "vitepress") == ["guide/b.md", "guide/index.md", "guide/a.md"]
    root = tmp_path / "s/src/content/docs"
    write(root, "start.mdx", "ref/x.md", "ref/y.md")
    (tmp_path / "s/astro.config.mjs").write_text(
        "starlight({ sidebar: [{ label: 'Ref', autogenerate: { directory: 'ref' } }, { slug: 'start' }] })"
    )
    assert listed(root, "starlight") == ["ref/x.md", "ref/y.md", "start.mdx"]


def test_a_sidebar_in_a_file_of_its_own_and_pages_of_a_default_language(tmp_path: Path) -> None:
    root = tmp_path / "s/src/content/docs"
    write(root, "en/start.mdx", "en/arm/x.md", "en/arm/y.md", "de/start.mdx")
    (tmp_path / "s/astro.config.ts").write_text(
        "import { sidebar } from './astro.sidebar';\n"
        "export default starlight({ defaultLocale: 'en', locales: { en: {}, de: {} }, sidebar });"
    )
    (tmp_path / "s/astro.sidebar.ts").write_text(
        "export const sidebar = [ group('arms', { items: ['arm/y', 'arm/x'] }), { label: 'S', items: ['start'] } ];"
    )
    entries = navigation(root, "starlight")
    assert [entry.path for entry in entries] == ["en/arm/y.md", "en/arm/x.md", "en/start.mdx"]
    assert entries[-1].parents == ("S",)


def test_a_sidebar_is_not_imported_from_outside_of_its_project(tmp_path: Path) -> None:
    root = tmp_path / "s/src/content/docs"
    write(root, "start.mdx")
    (tmp_path / "s/astro.config.ts").write_text("import sidebar from '../other';\nstarlight({ sidebar })")
    (tmp_path / "other.ts").write_text("export default sidebar = ['start']")
    assert navigation(root, "starlight") == []
    (tmp_path / "other.ts").unlink()
    (tmp_path / "other.ts").symlink_to("other.ts")
    assert navigation(root, "starlight") == []


def test_parents_of_a_page_are_the_labels_around_it(tmp_path: Path) -> None:
    write(tmp_path / "docs", "intro.md", "a.md", "b.md", "c.md", "d.md", "more/x.md")
    (tmp_path / "sidebars.js").write_text(
        "module.exports = { docs: ['intro', {type: 'category', label: \"Readers' guide\",\n"
        "  link: {type: 'doc', id: 'a'},\n"
        "  items: ['b', {type: 'category', label: 'Deep', items: [{type: 'doc', id: 'c', label: 'Sea'}]}]},\n"
        "  {'In short': ['d']},\n"
        "  {type: 'category', label: 'More', items: [{type: 'autogenerated', dirName: 'more'}]}] };"
    )
    assert {entry.path: entry.parents for entry in navigation(tmp_path / "docs", "docusaurus")} == {
        "intro.md": (),
        "a.md": (),
        "b.md": ("Readers' guide",),
        "c.md": ("Readers' guide", "Deep"),
        "d.md": ("In short",),
        "more/x.md": ("More",),
    }
    root = tmp_path / "s/src/content/docs"
    write(root, "start.mdx", "ref/x.md")
    (tmp_path / "s/astro.config.mjs").write_text(
        "starlight({ sidebar: [{ label: 'Ref', autogenerate: { directory: 'ref' } }, { slug: 'start' }] })"
    )
    assert [entry.parents for entry in navigation(root, "starlight")] == [("Ref",), ()]


def test_unbalanced_brackets_are_tolerated(tmp_path: Path) -> None:
    write(tmp_path / "docs", "a.md")
    (tmp_path / "sidebars.js").write_text("]}" * 1000 + "{label: 'x', items: [" * 20_000 + "'a', " * 5_000)
    (entry,) = navigation(tmp_path / "docs", "docusaurus")
    assert entry.path == "a.md"
    assert set(entry.parents) == {"x"}


async def test_pages_have_the_chapters_of_the_navigation(tmp_path: Path) -> None:
    write(tmp_path / "docs", "index.md", "guide/b.md")
    (tmp_path / "mkdocs.yml").write_text("nav:\n  - index.md\n  - User  Guide\u200b:\n    - guide/b.md\n", "utf-8")
    found = await collect(Folder(tmp_path, SourceOptions()).documents({}))
    chapters = {one.path: one.chapters for one in found.documents.values()}
    assert chapters == {"index.md": (), "guide/b.md": ("User Guide",)}
    before = {one.path: one.surroundings for one in found.documents.values()}
    (tmp_path / "mkdocs.yml").write_text("nav:\n  - index.md\n  - Handbook:\n    - guide/b.md\n")
    found = await collect(Folder(tmp_path, SourceOptions()).documents({}))
    after = {one.path: one.surroundings for one in found.documents.values()}
    assert before["index.md"] == after["index.md"]
    assert before["guide/b.md"] != after["guide/b.md"]  # so the page is read again


async def test_pages_have_the_labels_of_their_folders(tmp_path: Path) -> None:
    write(tmp_path / "d", "docusaurus.config.js", "docs/a.md", "docs/one/b.md", "docs/one/two/c.md")
    (tmp_path / "d/docs/one/_category_.json").write_text('{"label": "Number one", "position": 3}')
    (tmp_path / "d/docs/one/two/_category_.yml").write_text("label: [1]\n")
    found = await collect(Folder(tmp_path / "d", SourceOptions()).documents({}))
    assert {one.path: one.chapters for one in found.documents.values()} == {
        "a.md": (),
        "one/b.md": ("Number one",),
        "one/two/c.md": ("Number one",),
    }
    write(tmp_path / "h", "hugo.toml", "content/docs/_index.md", "content/docs/a.md")
    (tmp_path / "h/content/docs/_index.md").write_text("---\ntitle: The manual\n---\ntext")
    found = await collect(Folder(tmp_path / "h", SourceOptions()).documents({}))
    assert {one.chapters for one in found.documents.values()} == {("The manual",)}
