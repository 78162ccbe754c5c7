"""Folders of AsciiDoc files: chapters, fragments, order, Antora components."""

from pathlib import Path

from chapterverse.book import Page
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import NothingToRead
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.readers import read
from chapterverse.ingestion.readers.asciidoc import project as asciidoc_project
from chapterverse.ingestion.sources.folder import Folder
from tests.ingestion.sources.site import collect

BOOK = {
    "A-appendix/commands.asc": "[appendix]\n== Commands\n\nAll.",
    "book.asc": (
        "= The Book\n:product: Rover\n\ninclude::book/preface.asc[]\n\ninclude::book/01-intro/1-intro.asc[]\n\n"
        "include::book/02-basics/1-basics.asc[]\n\ninclude::A-appendix/commands.asc[]"
    ),
    "book/preface.asc": "[preface]\n== Preface\n\nAbout {product}.",
    "book/01-intro/1-intro.asc": (
        "[[ch01]]\n== Getting Started\n\nHello.\n\ninclude::sections/install.asc[]\n\ninclude::sections/about.asc[]\n\n"
        "=== Summary\n\nSee <<ch02-basics#_fetching>>."
    ),
    "book/01-intro/sections/about.asc": "=== About\n\n{product} is old.",
    "book/01-intro/sections/install.asc": "=== Install\n\nRun it.",
    "book/02-basics/1-basics.asc": "== Basics\n\nFirst.\n\ninclude::sections/fetch.asc[]\n\ninclude::snippet.asc[]",
    "book/02-basics/sections/fetch.asc": "[[_fetching]]\n=== Fetching\n\nFetch.",
    "book/02-basics/snippet.asc": "Only a snippet.",
}


async def _read(root: Path, files: dict[str, str], base: str = "") -> tuple[list[Page], dict[str, str]]:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    found = await collect(Folder(root, SourceOptions(base_url=base)).documents({}))
    pages: list[Page] = []
    skipped = dict(found.skipped)
    for document in found.documents.values():
        try:
            pages += [compose(document, draft) for draft in read(document)]
        except NothingToRead as why:
            skipped[document.url] = str(why)
    return sorted(pages, key=lambda page: page.place), skipped


async def test_main_document_gives_order_and_modules_of_the_chapters(tmp_path: Path) -> None:
    pages, skipped = await _read(tmp_path / "b", BOOK)
    assert [(page.title, page.module) for page in pages] == [
        ("Preface", "Preface"),
        ("Getting Started", "Getting Started"),
        ("Install", "Getting Started"),
        ("About", "Getting Started"),
        ("Basics", "Basics"),
        ("Fetching", "Basics"),
        ("Commands", "Commands"),
    ]
    assert skipped == {
        "b/book.asc": "no text in it",
        "b/book/02-basics/snippet.asc": "included in book/02-basics/1-basics.asc",
    }
    texts = {page.title: page for page in pages}
    assert texts["Preface"].text.endswith("About Rover.")
    assert texts["Basics"].text == "# Basics\n\nFirst.\n\nOnly a snippet."
    (link,) = texts["Getting Started"].marks
    assert link.target == "b/book/02-basics/sections/fetch.asc#_fetching"
    assert texts["Getting Started"].text.endswith("See Fetching.")


async def test_own_headings_below_the_chapters_do_not_make_a_book_a_page(tmp_path: Path) -> None:
    preface = "== Preface\n\n=== Who\n\nYou.\n\n=== Why\n\nFun.\n\n=== How\n\nRead."
    files = {
        "book.adoc": f"= Book\n\n{preface}\n\ninclude::one.adoc[]\n\ninclude::two.adoc[]",
        "one.adoc": "== One\n\nFirst.",
        "two.adoc": "== Two\n\nSecond.",
    }
    pages, skipped = await _read(tmp_path / "b", files)
    assert [page.title for page in pages] == ["Book", "One", "Two"]
    assert not skipped


async def test_section_that_a_guide_includes_below_its_own_stays_in_it(tmp_path: Path) -> None:
    files = {
        "guide.adoc": "= Guide\n\n== Install\n\nDo this.\n\ninclude::steps.adoc[]\n\n== Use\n\nDrive.",
        "steps.adoc": "=== Steps\n\nStep by step.",
    }
    pages, skipped = await _read(tmp_path / "b", files)
    assert [page.title for page in pages] == ["Guide"]
    assert pages[0].text.endswith("Do this.\n\n### Steps\n\nStep by step.\n\n## Use\n\nDrive.")
    assert skipped == {"b/steps.adoc": "included in guide.adoc"}


async def test_guide_that_includes_another_page_keeps_its_text(tmp_path: Path) -> None:
    guide = (
        "= Guide\n\n"
        + "".join(f"== Part {number}\n\nText.\n\n" for number in range(9))
        + "include::dev.adoc[leveloffset=+1]"
    )
    pages, skipped = await _read(tmp_path / "b", {"guide.adoc": guide, "dev.adoc": "= Dev\n\nHow.", "_x.adoc": "no"})
    assert [page.title for page in pages] == ["Dev", "Guide"]
    assert pages[1].text.endswith("## Dev\n\nHow.")
    assert skipped == {"b/_x.adoc": "partial"}


async def test_antora_component_uses_its_navigation_and_attributes(tmp_path: Path) -> None:
    files = {
        "antora.yml": "name: c\nasciidoc:\n  attributes:\n    product: Rover\nnav:\n- modules/ROOT/nav.adoc\n",
        "modules/ROOT/nav.adoc": "* xref:index.adoc[]\n* Guides\n** xref:zeta.adoc[]\n** xref:api:calls.adoc[Calls]\n",
        "modules/ROOT/pages/index.adoc": "= Home\n\n{product}: xref:api:calls.adoc[]\n\n"
        "include::partial$note.adoc[]\n\nimage::p.png[Plot]\n\n----\ninclude::example$a.py[]\n----",
        "modules/ROOT/pages/zeta.adoc": "= Zeta\n\nLast letter.",
        "modules/ROOT/partials/note.adoc": "A note.",
        "modules/ROOT/examples/a.py": "a = 1",
        "modules/api/pages/calls.adoc": "= API calls\n\nAll.",
    }
    pages, skipped = await _read(tmp_path / "c", files, "https://b.test/c")
    assert [(page.url, page.title, page.module) for page in pages] == [
        ("https://b.test/c/index.html", "Home", "Home"),
        ("https://b.test/c/zeta.html", "Zeta", "Guides"),
        ("https://b.test/c/api/calls.html", "API calls", "Guides"),
    ]
    home = pages[0]
    assert "Rover: API calls" in home.text
    assert "A note." in home.text and "a = 1" in home.text
    assert home.marks[0].target == "https://b.test/c/api/calls.html"
    assert [block.info for block in home.blocks if block.kind == "image"] == [
        "https://b.test/c/modules/ROOT/images/p.png"
    ]
    assert set(skipped.values()) <= {"partial", "included in modules/ROOT/pages/index.adoc"}


async def test_antora_navigation_is_asciidoc(tmp_path: Path) -> None:
    files = {
        "antora.yml": "name: c\nasciidoc:\n  attributes:\n    n: 1\nnav: [modules/ROOT/nav.adoc]\n",
        "modules/ROOT/nav.adoc": ".xref:index.adoc[Getting *Started*]\n* xref:a.adoc[A]\ninclude::partial$more.adoc[]\n"
        "\n.Group {n}\n- xref:{file}.adoc[`D`]\nifdef::none[]\n- xref:e.adoc[E]\nendif::[]\n",
        "modules/ROOT/partials/more.adoc": ":file: d\n* B {n}\n** xref:b.adoc[]\n",
        **{f"modules/ROOT/pages/{name}.adoc": f"= Title {name}\n\nText." for name in ("index", "a", "b", "d", "e")},
    }
    await _read(tmp_path / "c", files)
    assert [(entry.title, entry.parents, entry.module) for entry in asciidoc_project.navigation(tmp_path / "c")] == [
        ("Getting Started", (), "Getting Started"),
        ("A", ("Getting Started",), "Getting Started"),
        ("Title b", ("Getting Started", "B 1"), "Getting Started"),
        ("D", ("Group 1",), "Group 1"),
    ]


async def test_antora_attributes_are_unset_by_null_and_false(tmp_path: Path) -> None:
    files = {
        "antora.yml": "name: c\nasciidoc:\n  attributes:\n    gone: ~\n    soft: false\n    flag: true\n    k: v1@\n",
        "modules/ROOT/pages/a.adoc": "= A\n\nifdef::gone[gone]\nifdef::soft[soft]\nifdef::flag['{flag}' {k}]",
    }
    (page,), _ = await _read(tmp_path / "c", files)
    assert page.text == "# A\n\n'' v1"


async def test_antora_includes_and_images_of_a_component(tmp_path: Path) -> None:
    files = {
        "a/antora.yml": "name: rover\n",
        "a/modules/ROOT/pages/a.adoc": "= A\n\ninclude::rover:ROOT:partial$p.adoc[]\n\n"
        "include::1.0@rover::partial$p.adoc[]\n\ninclude::arm:joints:partial$q.adoc[]\n\n"
        "include::lidar::partial$p.adoc[]\n\nimage::arm::y.png[Why]",
        "a/modules/ROOT/partials/p.adoc": "Rover.",
        "b/antora.yml": "name: arm\n",
        "b/modules/joints/partials/q.adoc": "Arm.",
    }
    pages, _ = await _read(tmp_path / "c", files, "https://b.test")
    (page,) = pages
    assert page.text.startswith("# A\n\nRover.\n\nRover.\n\nArm.")
    assert [block.info for block in page.blocks if block.kind == "image"] == [
        "https://b.test/b/modules/ROOT/images/y.png"
    ]


async def test_include_inside_a_condition_on_one_line(tmp_path: Path) -> None:
    files = {
        "a.adoc": "= A\n\nifdef::asciidoctor[include::part.adoc[]]\n\nifdef::x[include::part.adoc[]]\n\nEnd.",
        "part.adoc": "Text.",
    }
    (page,), skipped = await _read(tmp_path / "b", files)
    assert page.text == "# A\n\nText.\n\nEnd."
    assert skipped == {"b/part.adoc": "included in a.adoc"}


async def test_antora_references_to_other_components(tmp_path: Path) -> None:
    files = {
        "a/antora.yml": "name: rover\n",
        "a/modules/ROOT/pages/index.adoc": "= Rover\n\nSee xref:arm:joints:elbow.adoc[], "
        "xref:rover::index.adoc[home] and xref:lidar::scan.adoc[the scanner].",
        "b/antora.yml": "name: arm\n",
        "b/modules/joints/pages/elbow.adoc": "= Elbow\n\nIt bends.",
    }
    pages, _ = await _read(tmp_path / "c", files, "https://b.test")
    (rover,) = (page for page in pages if page.title == "Rover")
    assert rover.text.endswith("See Elbow, home and the scanner.")  # lidar is not in the folder: text without a link
    assert [rover.text[mark.start : mark.end] for mark in rover.marks] == ["Elbow", "home"]


def test_files_that_include_each_other_do_not_loop(tmp_path: Path) -> None:
    (tmp_path / "a.adoc").write_text("= A\n\ninclude::b.adoc[]")
    (tmp_path / "b.adoc").write_text("== B\n\ninclude::a.adoc[]\n\ninclude::b.adoc[]")
    asciidoc_project.forget()
    project = asciidoc_project.project_of(str(tmp_path))
    assert len(project.order()) <= 2
    assert project.context("b.adoc") is not None


async def test_attributes_are_not_read_through_links_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/attributes.adoc").write_text(":key: secret")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/linked").symlink_to(tmp_path / "outside")
    (tmp_path / "b/circular").symlink_to("circular")
    files = {
        "book.adoc": "= Book\n\ninclude::linked/attributes.adoc[]\n\ninclude::own.adoc[]\n\ninclude::one.adoc[]",
        "own.adoc": ":own: public\n\ninclude::circular/x.adoc[]",
        "one.adoc": "== One\n\n{key} {own}",
    }
    pages, _ = await _read(tmp_path / "b", files)
    assert [page.text for page in pages] == ["# One\n\n{key} public"]
