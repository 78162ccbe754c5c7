"""Builds books with the real Sphinx, to compare its HTML with our reStructuredText reader.

Sphinx runs in its own environment (`READERS_SPHINX` names its Python; otherwise one is created in `.cache`). The book's
`conf.py` is not executed. A small one is written that takes its literal values and replaces extensions that are not
installed. Content that needs the book's own code (autodoc, diagrams) is left out on both sides.
"""

import json
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.results import ROOT
from chapterverse.ingestion.readers.sphinx.configuration import configuration

CACHE = ROOT / ".cache" / "readers"
CORPORA = ROOT.parent / "shared" / "data" / "corpora"
REQUIREMENTS = (
    "sphinx==9.0.4", "docutils==0.22.4", "sphinx-tabs==3.5.0", "sphinx-design==0.8.0", "myst-parser==5.2.0",
)  # fmt: skip
_TAKEN = {
    "rst_prolog",
    "rst_epilog",
    "extlinks",
    "exclude_patterns",
    "default_role",
    "master_doc",
    "root_doc",
    "numfig",
}
_LEFT_OUT = [
    *(
        "autoattribute",
        "autoclass",
        "autodata",
        "autoenum",
        "autoexception",
        "autofunction",
        "automethod",
        "automodule",
    ),
    *("autoproperty", "autosummary", "click", "digraph", "doxygenclass", "doxygenfunction", "graphviz"),
    *("inheritance-diagram", "mermaid", "minigallery", "plot", "redirect-from", "tutorial-formatter", "uml"),
]
_CONF = """
import json
from docutils import nodes
from docutils.parsers.rst import Directive, directives
given = json.loads({given!r})
globals().update(given)
extensions = {extensions!r}
html_theme = "basic"
html_copy_source = False
html_permalinks = False
smartquotes = False
suppress_warnings = ["*"]

class AnyOption(dict):
    def __missing__(self, key):
        return directives.unchanged
    def __bool__(self):
        return True

class LeftOut(Directive):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = AnyOption()
    def run(self):
        return []

def setup(app):
    for name in {left_out!r}:
        app.add_directive(name, LeftOut, override=True)
    for name in {objects!r}:
        app.add_object_type(name, name)
    for name in {values!r}:
        app.add_config_value(name, "", "env")
"""


@dataclass(frozen=True, slots=True)
class SphinxBook:
    """A book whose pages are built by Sphinx."""

    name: str
    repository: str
    commit: str
    folder: str  # folder of the pages, relative to the repository's root
    extensions: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()  # kinds of objects that the book's own code adds
    settings: dict[str, Any] = field(default_factory=dict)
    archive: str = ""  # name of a corpus in shared/data, instead of the repository


BOOKS = (
    SphinxBook(
        "ros2", "https://github.com/ros2/ros2_documentation", "b5b8578c2505b96dd724500d374bdc230fe1a61d", "source",
        ("sphinx_tabs.tabs", "sphinx.ext.ifconfig"), settings={"smv_current_version": ""},
    ),
    SphinxBook(
        "flask", "https://github.com/pallets/flask", "2ac89889", "docs", ("sphinx.ext.extlinks", "sphinx_tabs.tabs"),
    ),
    SphinxBook(
        "moveit", "https://github.com/moveit/moveit2_tutorials", "b0ba2a97", ".",
        ("sphinx.ext.autosectionlabel", "sphinx.ext.extlinks", "sphinx_tabs.tabs", "sphinx.ext.ifconfig"),
    ),
    SphinxBook(  # the code that it includes is not in the corpus
        "ray", "https://github.com/ray-project/ray", "79a5643238f890f0b163c3a886aa51d1abc6e4f7", ".",
        ("sphinx_design", "sphinx_tabs.tabs", "myst_parser", "sphinx.ext.doctest"),
        settings={"myst_enable_extensions": ["dollarmath", "deflist", "colon_fence"]},
        archive="ray_docs/ray_docs.tar.gz",
    ),
)  # fmt: skip


def sources(book: SphinxBook) -> Path:
    """The folder of a book's pages. The book is cloned if it is missing."""
    return (project(book) / book.folder).resolve()


def project(book: SphinxBook) -> Path:
    """The folder that a user would name: the project. Pages may include its files."""
    place = Path(os.environ.get("READERS_BOOKS", CACHE / "books")) / book.name
    if not place.is_dir() and book.archive:
        with tarfile.open(CORPORA / book.archive) as archive:
            archive.extractall(place, filter="data")
        (place / "conf.py").write_text("", "utf-8")  # the corpus has only pages
    elif not place.is_dir():
        subprocess.run(["git", "clone", "--quiet", book.repository, str(place)], check=True)
        subprocess.run(["git", "-C", str(place), "checkout", "--quiet", book.commit], check=True)
    return place.resolve()


def build(book: SphinxBook) -> Path:
    """Return the folder with the HTML of a book, which is built first if needed."""
    pages, site = sources(book), CACHE / "sphinx" / book.name
    if (site / "done").is_file():
        return site
    conf = site / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    given = _settings(pages) | book.settings
    written = _CONF.format(
        given=json.dumps(given), extensions=list(book.extensions), left_out=_LEFT_OUT, objects=list(book.objects),
        values=[name for name in book.settings if not name.startswith("myst")],
    )  # fmt: skip
    (conf / "conf.py").write_text(written, "utf-8")
    command = [str(_python()), "-m", "sphinx", "-q", "-b", "html", "-d", str(site / "trees"), "-c", str(conf)]
    subprocess.run([*command, str(pages), str(site / "html")], check=True)
    (site / "done").touch()
    return site


def _settings(pages: Path) -> dict[str, Any]:
    return {name: value for name, value in configuration(pages).items() if name in _TAKEN}


def _python() -> Path:
    if named := os.environ.get("READERS_SPHINX"):
        return Path(named)
    place = CACHE / "sphinx-environment"
    if not (place / "ready").is_file():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([str(place / "bin" / "pip"), "install", "--quiet", *REQUIREMENTS], check=True)
        (place / "ready").touch()
    return place / "bin" / "python"


if __name__ == "__main__":
    for one in BOOKS:
        print(one.name, build(one))
