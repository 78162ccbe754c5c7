import asyncio
import time
from pathlib import Path

import pytest

from chapterverse.ingestion.chunking import cut
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, Fetched, NothingToRead, Reference, Skipped
from chapterverse.ingestion.navigation import NavigationEntry, entries, navigation
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.readers import read
from chapterverse.ingestion.readers.sphinx.project import Project, doc_key, read_project
from chapterverse.ingestion.readers.sphinx.scanner import plain_title
from chapterverse.ingestion.sources.folder import Folder
from chapterverse.units import cut_units


@pytest.fixture(autouse=True)
def _fresh() -> None:
    read_project.cache_clear()


def _write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def _project(root: Path, files: dict[str, str]) -> Project:
    return read_project(str(_write(root, files)))


def _documents(root: Path, base: str = "https://b.test") -> list[Fetched]:
    async def fetch() -> list[Fetched]:
        return [one async for one in Folder(root, SourceOptions(base_url=base)).documents({})]

    return asyncio.run(fetch())


BOOK = {
    "conf.py": "import os\nos.abort()\nexclude_patterns = ['_*', 'drafts']\nrst_epilog = '.. |N| replace:: Name'\n",
    "index.rst": (
        "The |N|\n=======\n\n.. toctree::\n   :caption: Start\n\n   zebra\n   Other title <more/index>\n"
        "   https://x.test\n   missing\n\n.. toctree::\n   :glob:\n   :reversed:\n\n   parts/*\n"
    ),
    "zebra.rst": "Zebra\n=====\n\nSee :ref:`deep` and :doc:`more/index`.\n",
    "more/index.rst": "More\n====\n\n.. toctree::\n\n   inner\n   /zebra\n",
    "more/inner.md": "# Inner\n\n(label-in-md)=\n## Second\n\nText.\n",
    "parts/a.rst": "A\n=\n\na\n",
    "parts/b.rst": "-\nB\n-\n\n.. _deep:\n\nDeep ``code``\n~~~~~~~~~~~~~\n\nb\n",
    "apart.rst": "Apart\n=====\n\nx\n",
    "drafts/d.rst": "Draft\n=====\n\nx\n",
}


def test_navigation_follows_the_toctrees(tmp_path: Path) -> None:
    assert _project(tmp_path, BOOK).navigation() == [
        NavigationEntry("index.rst", "The Name"),
        NavigationEntry("zebra.rst", "Zebra", ("Start",)),
        NavigationEntry("more/index.rst", "Other title", ("Start",)),
        NavigationEntry("more/inner.md", "Inner", ("Start", "Other title")),
        NavigationEntry("parts/b.rst", "B"),
        NavigationEntry("parts/a.rst", "A"),
    ]
    assert navigation(tmp_path, "plain") == []
    assert list(entries(tmp_path, "sphinx")).index("parts/a.rst") == 5


def test_pages_have_the_order_of_the_navigation_and_resolved_links(tmp_path: Path) -> None:
    found = _documents(_write(tmp_path, BOOK))
    assert Skipped("https://b.test/drafts/d.html", "excluded by conf.py") in found
    pages = [compose(one, read(one)[0]) for one in found if isinstance(one, Document) and "index" not in one.path]
    pages.sort(key=lambda page: page.place)
    assert [page.title for page in pages] == ["Zebra", "Inner", "B", "A", "Apart"]
    assert pages[0].text.endswith("See Deep code and More.")
    assert [mark.target for mark in pages[0].marks] == [
        "https://b.test/parts/b.html#deep-code",
        "https://b.test/more/index.html",
    ]


def test_surroundings_change_if_a_referenced_title_changes(tmp_path: Path) -> None:
    def zebra() -> str:
        return next(one.surroundings for one in _documents(tmp_path) if isinstance(one, Document) and "zeb" in one.path)

    _write(tmp_path, BOOK)
    before = zebra()
    _write(tmp_path, {"parts/a.rst": "A\n=\n\nsomething else\n"})
    assert zebra() == before
    _write(tmp_path, {"parts/b.rst": ".. _deep:\n\nOther\n=====\n\nb\n"})
    assert zebra() != before


def test_labels_objects_and_terms_are_found(tmp_path: Path) -> None:
    text = """
.. _top:

Page
====

.. _again:

Page
----

.. _Some Thing:

A paragraph.

.. _fig:

.. figure:: x.png

   The caption

.. _term:

``word``
   What it means.

.. py:module:: pkg

.. py:class:: Robot(name)

   .. py:method:: run()

.. confval:: rate

.. program:: tool

.. option:: -v, --verbose

.. rst:directive:: .. box:: title

   .. rst:directive:option:: wide

.. glossary::

   Node
   Nodes
      A process.

.. py:function:: hidden()
   :no-index:

.. code-block:: rst

   .. py:function:: example()

Like::

   .. _not-a-label:
"""
    known = _project(tmp_path, {"page.rst": text}).references
    assert {key: (one.anchor, one.title) for key, one in known.items() if key.startswith("label:")} == {
        "label:top": ("page", "Page"),
        "label:again": ("again", "Page"),
        "label:some thing": ("some-thing", ""),
        "label:fig": ("fig", "The caption"),
        "label:term": ("term", "word"),
    }
    assert {key: one.anchor for key, one in known.items() if not key.startswith(("label:", "doc:"))} == {
        "object:pkg": "module-pkg",
        "object:pkg.Robot": "pkg.Robot",
        "object:Robot": "pkg.Robot",
        "object:pkg.Robot.run": "pkg.Robot.run",
        "object:Robot.run": "pkg.Robot.run",
        "object:run": "pkg.Robot.run",
        "confval:rate": "confval-rate",
        "option:tool -v": "cmdoption-tool-v",
        "option:-v": "cmdoption-tool-v",
        "option:tool --verbose": "cmdoption-tool-v",
        "option:--verbose": "cmdoption-tool-v",
        "directive:box": "directive-box",
        "directive:box:wide": "directive-option-box-wide",
        "term:node": "term-Node",
        "term:nodes": "term-Nodes",
    }
    assert known["doc:page"] == Reference("page.rst", "", "Page")


@pytest.mark.parametrize(
    ("target", "key"),
    [("x", "doc:a/x"), ("/x", "doc:x"), ("../x.rst", "doc:x"), ("../../../x", "doc:x"), ("", "doc:a")],
)
def test_doc_key_resolves_relative_names(target: str, key: str) -> None:
    assert doc_key(target, "a") == key


def test_title_may_follow_an_overlined_one_at_once(tmp_path: Path) -> None:
    project = _project(tmp_path, {"conf.py": "", "index.rst": "=====\nRover\n=====\nParts\n-----\n\nArms.\n"})
    assert project.files["index.rst"].title == "Rover"
    assert list(project.files["index.rst"].sections) == ["Rover", "Parts"]


def test_autosectionlabel_adds_section_labels(tmp_path: Path) -> None:
    conf = "extensions = ['sphinx.ext.autosectionlabel']\nautosectionlabel_prefix_document = True\n"
    known = _project(tmp_path, {"conf.py": conf, "a.rst": "Big Title\n=========\n"}).references
    assert known["label:a:big title"] == Reference("a.rst", "big-title", "Big Title")


@pytest.mark.parametrize("conf", ["(" * 5_000, "x = " + "-" * 100_000 + "1", "\0", "rst_prolog = exit()", "= ="])
def test_conf_py_is_not_executed_and_may_be_broken(tmp_path: Path, conf: str) -> None:
    project = _project(tmp_path, {"conf.py": conf, "index.rst": "A\n=\n\n.. toctree::\n\n   b\n", "b.rst": "B\n=\n"})
    assert project.settings == {}
    assert len(project.navigation()) == 2


def test_looping_toctrees_end(tmp_path: Path) -> None:
    files = {f"p{n}.rst": f"P\n=\n\n.. toctree::\n   :glob:\n\n   *\n   p{(n + 1) % 200}\n" for n in range(200)}
    start = time.process_time()
    assert len(_project(tmp_path, files | {"index.rst": "I\n=\n\n.. toctree::\n\n   p0\n"}).navigation()) > 100
    assert time.process_time() - start < 10


@pytest.mark.parametrize("text", ["`" * 100_000, "=\n" * 50_000, ".. _a:\n" * 50_000, ":a:`" * 30_000, "``a" * 50_000])
def test_hostile_file_is_read_in_bounded_time(tmp_path: Path, text: str) -> None:
    start = time.process_time()
    _write(tmp_path, {"index.rst": text})
    assert _documents(tmp_path)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("folder", ["docs", "doc/source", "source"])
def test_docs_folder_of_a_repository_is_read_and_may_include_files_outside_of_it(tmp_path: Path, folder: str) -> None:
    up = "../" * (folder.count("/") + 1)
    pages = {f"{folder}/conf.py": "", f"{folder}/index.rst": f"Title\n=====\n\n.. include:: {up}CHANGES.rst\n"}
    _write(tmp_path, pages | {"CHANGES.rst": "It is faster.\n", "README.md": "# Read me\n", "tests/x.md": "# X\n"})
    (document,) = [one for one in _documents(tmp_path) if isinstance(one, Document)]
    page = compose(document, read(document)[0])
    assert page.url == "https://b.test/index.html"
    assert "It is faster." in page.text


def test_anchors_of_directives_c_and_cpp_objects(tmp_path: Path) -> None:
    text = (
        "T\n=\n\n.. rst:directive:: one\n                   two\n\n   .. rst:directive:option:: deep\n\n"
        ".. c:struct:: Data\n\n   .. c:member:: int a\n\n.. cpp:function:: void start(int x)\n"
    )
    objects = _project(tmp_path, {"conf.py": "", "index.rst": text}).files["index.rst"].objects
    assert objects["directive:one:deep"] == "directive-option-one-deep"
    assert (objects["c:Data"], objects["c:Data.a"]) == ("c.Data", "c.Data.a")
    assert objects["cpp:start"] == "_CPPv45starti"


def test_coroutines_can_be_linked(tmp_path: Path) -> None:
    text = "T\n=\n\n.. class:: Stream\n\n   .. coroutinemethod:: read(n=-1)\n"
    known = _project(tmp_path, {"conf.py": "", "index.rst": text}).references
    assert known["object:Stream.read"].anchor == "Stream.read"


def test_settings_are_evaluated_from_literals(tmp_path: Path) -> None:
    conf = (
        "import os\nuser = 'robots'\ncontext = {'user': user, 'branch': 'main'}\nversion = os.environ['X']\n"
        "extlinks = {'code': ('https://x.test/' + context['user'] + f'/{context[\"branch\"]}/%s', '%s')}\n"
        "exclude_patterns = ['a']\nexclude_patterns += ['b']\nrelease = version + '1'\n"
        "project = 'x'\n" + "project = project + project\n" * 60
    )
    settings = _project(tmp_path, {"conf.py": conf, "index.rst": "T\n=\n"}).settings
    assert settings["extlinks"] == {"code": ("https://x.test/robots/main/%s", "%s")}
    assert settings["exclude_patterns"] == ("a", "b")
    assert "version" not in settings
    assert "release" not in settings
    assert len(settings.get("project", "")) < 2_000_000


NUMBERED = {
    "conf.py": "numfig = True\nnumfig_format = {'table': 'Tab. %s'}\n",
    "index.rst": "Book\n====\n\n.. toctree::\n   :numbered:\n\n   one\n   two\n",
    "one.rst": (
        "One\n===\n\n.. figure:: a.png\n\n   First.\n\n"
        ".. _fig-b:\n\n.. figure:: b.png\n   :alt: B\n\n   Second, *big*.\n\n"
        ".. figure:: bare.png\n\nSee :numref:`fig-b`, :numref:`picture %s <fig-b>`, :numref:`tab`, :numref:`gone`.\n"
    ),
    "two.rst": (
        "Two\n===\n\n.. table:: The sizes\n   :name: tab\n\n   == ==\n   a  b\n   == ==\n\n"
        ".. code-block:: python\n   :caption: A program\n   :name: listing\n\n   x\n\n"
        "See :numref:`listing` and :ref:`fig-b`.\n"
    ),
}


def _texts(root: Path) -> dict[str, str]:
    found = [one for one in _documents(root) if isinstance(one, Document) and one.path != "index.rst"]
    return {one.path: compose(one, read(one)[0]).text for one in found}


def test_numfig_numbers_figures_tables_and_listings(tmp_path: Path) -> None:
    pages = _texts(_write(tmp_path, NUMBERED))
    assert "Fig. 1.2 Second, big." in pages["one.rst"]
    assert "See Fig. 1.2, picture 1.2, Tab. 2.1, gone." in pages["one.rst"]
    assert "Tab. 2.1 The sizes" in pages["two.rst"]
    assert "See Listing 2.1 and Second, big." in pages["two.rst"]


def test_numref_without_numbers_shows_the_caption(tmp_path: Path) -> None:
    pages = _texts(_write(tmp_path, NUMBERED | {"conf.py": ""}))
    assert "See Second, big., picture , The sizes, gone." in pages["one.rst"]
    pages = _texts(_write(tmp_path, {"conf.py": "numfig = True\nnumfig_secnum_depth = 0\n"}))
    assert "See Fig. 2, picture 2, Table 1, gone." in pages["one.rst"]


def test_looping_numbered_toctree_gives_no_numbers(tmp_path: Path) -> None:
    loop = "X\n=\n\n.. toctree::\n   :numbered:\n\n   {}\n   index\n"
    files = {
        "conf.py": "numfig = True",
        "index.rst": loop.format("a"),
        "a.rst": loop.format("b"),
        "b.rst": loop.format("a"),
    }
    assert _project(tmp_path, files).numbers() == {}


@pytest.mark.parametrize(
    ("title", "plain"),
    [
        ("Smac Hybrid-A* Planner", "Smac Hybrid-A* Planner"),
        ("The *one* and **only**", "The one and only"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        (":ref:`Some <x>` ``code``", "Some code"),
        (r"A\* and \\b", r"A* and \b"),
    ],
)
def test_plain_title_removes_markup(title: str, plain: str) -> None:
    assert plain_title(title) == plain


def test_titles_keep_escaped_backslashes_and_decorators_their_at_sign(tmp_path: Path) -> None:
    files = {
        "conf.py": "",
        "index.rst": "Book\n====\n\nSee :ref:`box` and :py:deco:`run`.\n\n.. py:decorator:: run\n\n   Runs it.\n",
        "a.rst": ".. _box:\n\nThe :code:`\\\\box` command\n==========================\n\nx\n",
    }
    (text,) = [
        compose(one, read(one)[0]).text
        for one in _documents(_write(tmp_path, files))
        if isinstance(one, Document) and one.path == "index.rst"
    ]
    assert "See The \\box command and `@run`." in text


def test_toctree_is_shown_but_is_no_unit_and_no_chunk(tmp_path: Path) -> None:
    files = {
        "conf.py": "",
        "index.rst": (
            "Book\n====\n\nWords.\n\n.. toctree::\n   :hidden:\n\n   a\n\n"
            ".. toctree::\n   :glob:\n\n   Bee <b>\n   more/*\n"
        ),
        "a.rst": "A\n=\n\nx\n",
        "b.rst": "B\n=\n\n.. toctree::\n\n   a\n",
        "more/c.rst": "The *C*\n=======\n\nx\n",
    }
    found = {one.path: one for one in _documents(_write(tmp_path, files)) if isinstance(one, Document)}
    page = compose(found["index.rst"], read(found["index.rst"])[0])
    assert page.text == "# Book\n\nWords.\n\n- Bee\n- The C"
    assert [mark.target for mark in page.marks] == ["https://b.test/b.html", "https://b.test/more/c.html"]
    assert [page.text[unit.start : unit.end] for unit in cut_units(page.text, page.blocks)] == ["Words."]
    (chunk,) = cut(page, len, 500)
    assert chunk.text == "# Book\n\nWords."
    with pytest.raises(NothingToRead):
        read(found["b.rst"])


def _start(root: Path, files: dict[str, str]) -> str:
    """The text of the start page."""
    found = _documents(_write(root, files))
    (page,) = [compose(one, read(one)[0]) for one in found if isinstance(one, Document) and one.path == "index.rst"]
    return page.text


def test_toctrees_that_html_does_not_show_are_left_out(tmp_path: Path) -> None:
    files = {name: f"The {name}\n=========\n\nx\n" for name in ("a.rst", "b.rst", "pdf.rst")} | {
        "conf.py": "",
        "index.rst": (
            "Book\n====\n\nWords.\n\n.. only:: latex\n\n   .. toctree::\n\n      pdf\n\n"
            "..\n   .. toctree::\n\n      pdf\n\n.. include:: part.inc\n\n.. toctree::\n\n   b\n"
        ),
        "part.inc": ".. toctree::\n   :maxdepth: 1\n\n   a\n",
    }
    assert _start(tmp_path, files) == "# Book\n\nWords.\n\n- The a.rst\n\n- The b.rst"
    assert [entry.path for entry in read_project(str(tmp_path)).navigation()] == ["index.rst", "a.rst", "b.rst"]


def test_labels_find_the_title_behind_them(tmp_path: Path) -> None:
    text = (
        "T\n=\n\nSee :ref:`a`, :ref:`b`, :ref:`c`, :ref:`d`, :ref:`e`, :doc:`more`.\n\n"
        ".. _a:\n\n.. currentmodule:: foo\n\nSec one\n-------\n\nx\n\n"
        ".. _b:\n\n.. rst-class:: wide\n\nSec two\n-------\n\nx\n\n"
        ".. _c:\n\n.. module:: pkg\n\nSec three\n---------\n\nx\n"
    )
    files = {"conf.py": "", "index.rst": text, "more.rst": ".. _d:\nMore\n====\n\n.. include:: part.inc\n"}
    files["part.inc"] = ".. include:: part.inc\n\n.. _e:\n\nA part\n------\n\nx\n"
    assert "See Sec one, Sec two, Sec three, More, A part, More." in _start(tmp_path, files)
    assert read_project(str(tmp_path)).references["label:e"] == Reference("more.rst", "a-part", "A part")


def test_excluded_pages_have_no_labels_and_are_in_no_toctree(tmp_path: Path) -> None:
    files = {
        "conf.py": "exclude_patterns = ['archive']\n",
        "index.rst": "T\n=\n\nSee :ref:`lab`.\n\n.. toctree::\n   :glob:\n\n   */index\n",
        "guide/index.rst": ".. _lab:\n\nNew page\n========\n\nx\n",
        "archive/index.rst": ".. _lab:\n\nOld page\n========\n\nx\n",
    }
    assert _start(tmp_path, files) == "# T\n\nSee New page.\n\n- New page"


def test_myst_roles_and_directives_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text("extensions = ['myst_parser']\n")
    (tmp_path / "index.md").write_text("# Home\n\nWords.\n")
    (tmp_path / "code.py").write_text("a = 1\nb = 2\n")
    (tmp_path / "part.md").write_text("Included *words*.\n")
    (tmp_path / "guide.md").write_text(
        "(lab)=\n# Guide\n\n"
        "See {ref}`lab`, {ref}`this <lab>`, {doc}`index`, [](#lab), {math}`n`, {py:func}`~rover.drive`.[^a]\n\n"
        "% a comment\n\n+++\n\n"
        "```{literalinclude} code.py\n:language: python\n:lines: 2\n```\n\n```{include} part.md\n```\n\n"
        "```{figure} arm.png\n:alt: An arm\n\nThe *arm*.\n```\n\n"
        "```{list-table} Sizes\n:header-rows: 1\n\n* - A\n  - B\n* - 1\n  - `2`\n```\n\n"
        "```{glossary}\nnode\ngraph node\n  A process.\n```\n\n"
        "```{py:function} rover.drive(speed)\n\nDrives.[^a]\n```\n\n"
        "```{code-block} md\n% kept\n```\n\n[^a]: A note.\n"
    )
    (guide,) = (one for one in _documents(tmp_path) if isinstance(one, Document) and one.path == "guide.md")
    page = compose(guide, read(guide)[0])
    assert page.text == (
        "# Guide\n\nSee Guide, this, Home, Guide, $n$, `drive`.\n\n```python\nb = 2\n```\n\nIncluded words.\n\n"
        "[Image: An arm]\n\nThe arm.\n\nSizes\n\n| A | B |\n| --- | --- |\n| 1 | `2` |\n\n"
        "`node, graph node`\nA process.\n\n`rover.drive(speed)`\nDrives.\n\n```md\n% kept\n```\n\nA note."
    )
    links = [(page.text[mark.start : mark.end], mark.target) for mark in page.marks if mark.kind == "link"]
    here = "https://b.test/guide.html#lab"
    assert links == [("Guide", here), ("this", here), ("Home", "https://b.test/index.html"), ("Guide", here)]
    assert [mark.target for mark in page.marks if mark.kind == "footnote"] == ["a", "a", "a"]


def test_myst_label_is_the_anchor_of_its_heading_and_can_be_linked(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text("extensions = ['myst_parser']\n")
    (tmp_path / "index.md").write_text("# Home\n\nSee [it](my_Label), [a page](more/guide), [a file](more/guide.md).\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more/guide.md").write_text(
        "# Guide\n\n(other)=\n(my_Label)=\n\n## Second <a name='x'></a>\n\nWords.\n\n"
        "```{eval-rst}\nThird\n-----\n\n:ref:`my_Label`\n```\n"
    )
    pages = {one.path: compose(one, read(one)[0]) for one in _documents(tmp_path) if isinstance(one, Document)}
    sections = pages["more/guide.md"].sections
    assert [(one.heading, one.level, one.anchor) for one in sections[1:]] == [
        ("Second", 2, "my-label"),
        ("Third", 3, "third"),
    ]
    there = "https://b.test/more/guide.html"
    assert [mark.target for mark in pages["index.md"].marks] == [f"{there}#my-label", there, there]
    assert [mark.target for mark in pages["more/guide.md"].marks] == [f"{there}#my-label"]
