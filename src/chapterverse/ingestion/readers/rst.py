"""reStructuredText, as docutils parses it, with what Sphinx adds.

Owns the walk from docutils' nodes to the parts of a page. Never includes files, passes raw output through or fails on
a mistake in the markup: what docutils complains of is left out, the rest is read.
"""

from functools import cache
from textwrap import fill
from typing import Any

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser
from docutils.parsers.rst.states import Inliner
from docutils.transforms.references import PropagateTargets, Substitutions
from docutils.utils import new_document

from chapterverse.ingestion.document import Document, Draft, Part, Unreadable
from chapterverse.ingestion.readers import sphinx
from chapterverse.ingestion.readers.cleaning import decode
from chapterverse.ingestion.readers.manuscript import Manuscript

_SILENT = 5  # a level above docutils' gravest message
# docutils takes time that grows with the square of these, and no book comes near them
_MAX_LINE = 5_000  # characters; longer lines are broken at a space
_MAX_PARAGRAPH = 10_000  # characters; a longer one is taken without its markup
_MAX_TARGETS = 1_000  # labels before headings

_UNSEEN = (nodes.Invisible, nodes.system_message, nodes.raw, nodes.target, nodes.footnote_reference, nodes.label)


def read(document: Document) -> list[Draft]:
    """The one page of a reStructuredText file."""
    return [Draft("", read_text(decode(document.data)))]


def read_text(text: str) -> tuple[Part, ...]:
    """The parts of a text; also for the passages of reStructuredText inside other formats."""
    try:
        return _Reading().read(_parse(text))
    except RecursionError as error:
        raise Unreadable("nested too deeply") from error


@cache
def _settings() -> Any:
    settings = get_default_settings(Parser)
    settings.report_level = settings.halt_level = _SILENT
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.syntax_highlight = "none"
    settings.auto_id_prefix = "id"  # as Sphinx numbers headings that come twice
    settings.line_length_limit = _MAX_LINE
    settings.warning_stream = False
    return settings


def _inliner() -> Inliner:
    """docutils' own, but for paragraphs that cannot be prose. Not a subclass: it fills its patterns from its class."""
    inliner = Inliner()
    within = inliner.parse

    def parse(text: str, *context: Any) -> Any:
        if len(text) > _MAX_PARAGRAPH:
            return [nodes.Text(text.replace("\0", "\\"))], []
        return within(text, *context)

    vars(inliner)["parse"] = parse
    return inliner


def _parse(text: str) -> nodes.document:
    text = "\n".join(_broken(line) for line in text.split("\n"))
    sphinx.prepare(text)
    document = new_document("page", _settings())
    Parser(inliner=_inliner()).parse(text, document)
    if text.count(".. _") <= _MAX_TARGETS:
        PropagateTargets(document).apply()
    Substitutions(document).apply()
    return document


def _broken(line: str) -> str:
    if len(line) <= _MAX_LINE:
        return line
    indent = line[: min(len(line) - len(line.lstrip()), 100)]
    return fill(line, _MAX_LINE, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _anchor(section: nodes.section) -> str:
    """The id that Sphinx shows: the title's; a label's when the title came before and has only a number."""
    ids: list[str] = section["ids"]
    numbered = len(ids) > 1 and ids[0].startswith("id")
    return ids[1] if numbered else ids[0] if ids else ""


class _Reading:
    def __init__(self) -> None:
        self._to = Manuscript()
        self._level = 0

    def read(self, document: nodes.document) -> tuple[Part, ...]:
        children = list(document.children)
        if children and isinstance(children[0], nodes.field_list):  # `:orphan:` and the like are about the page
            del children[0]
        for child in children:
            self._block(child)
        return self._to.finish()

    def _blocks(self, node: nodes.Node) -> None:
        for child in node.children:
            self._block(child)

    def _block(self, node: nodes.Node) -> None:  # noqa: PLR0912 one flat list of the kinds of blocks reads best
        match node:
            case nodes.section():
                self._section(node)
            case nodes.literal_block() | nodes.doctest_block():
                self._to.code(node.astext(), node.get("language", ""))
            case nodes.math_block():
                self._to.paragraph(f"$${node.astext()}$$")
            case nodes.comment() | nodes.substitution_definition():
                pass
            case _ if isinstance(node, _UNSEEN):
                pass
            case nodes.image():
                self._to.paragraph(node.get("alt", ""))
            case nodes.bullet_list() | nodes.enumerated_list():
                self._list(node)
            case nodes.definition_list() | nodes.field_list() | nodes.option_list():
                self._terms(node)
            case nodes.Admonition():
                self._admonition(node)
            case nodes.block_quote() if any(isinstance(child, nodes.attribution) for child in node):
                self._to.open_quote()
                self._blocks(node)
                self._to.close_quote()
            case nodes.table():
                self._table(node)
            case nodes.line_block():
                self._to.paragraph(" ".join(_sentence(line) for line in node.findall(nodes.line)))
            case nodes.TextElement():
                self._to.paragraph(_sentence(node))
            case _:
                self._blocks(node)

    def _section(self, section: nodes.section) -> None:
        self._level += 1
        for child in section.children:
            if isinstance(child, nodes.title):
                self._to.close_all()
                self._to.heading(_sentence(child, plain=True), self._level, _anchor(section))
            else:
                self._block(child)
        self._level -= 1

    def _list(self, node: nodes.bullet_list | nodes.enumerated_list) -> None:
        self._to.open_list(ordered=isinstance(node, nodes.enumerated_list), start=node.get("start", 1))
        for item in node.children:
            self._to.item()
            self._blocks(item)
        self._to.close_list()

    def _terms(self, node: nodes.Element) -> None:
        """Lists that explain: definitions, fields, command line options."""
        self._to.open_list()
        for item in node.children:
            *names, last = item.children or [nodes.definition()]
            self._to.item(", ".join(_sentence(name) for name in names if not isinstance(name, _UNSEEN)))
            self._blocks(last)
        self._to.close_list()

    def _admonition(self, node: Any) -> None:
        titles = [child for child in node.children if isinstance(child, nodes.title)]
        label = _sentence(titles[0]) if titles else node.get("label") or node.tagname.capitalize()
        self._to.open_admonition(label)
        for child in node.children:
            if not isinstance(child, nodes.title):
                self._block(child)
        self._to.close_admonition()

    def _table(self, table: nodes.table) -> None:
        for title in table.findall(nodes.title):
            self._to.paragraph(_sentence(title))
        self._to.open_table()
        for row in table.findall(nodes.row):
            self._to.row()
            for entry in row.children:
                self._to.cell()
                self._blocks(entry)
        self._to.close_table()


def _sentence(node: nodes.Node, plain: bool = False) -> str:
    """The text of inline nodes; code keeps its backticks unless `plain`."""
    if isinstance(node, nodes.Text):
        return str(node)
    if isinstance(node, _UNSEEN):
        return ""
    if isinstance(node, nodes.image):
        return str(node.get("alt", ""))
    said = "".join(_sentence(child, plain) for child in node.children)
    if isinstance(node, nodes.math):
        return f"${said}$"
    return f"`{said}`" if isinstance(node, nodes.literal) and not plain and "`" not in said else said
