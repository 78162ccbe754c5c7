"""Reads reStructuredText with docutils, and the additions of Sphinx (`sphinx/`).

Raw output is never passed on. Invalid markup is left out, and the rest is read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cache
from textwrap import fill
from typing import Any, ClassVar

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser, roles
from docutils.parsers.rst.states import Inliner
from docutils.transforms import references as transforms
from docutils.utils import new_document

from chapterverse.book import MarkKind
from chapterverse.ingestion.document import Document, Draft, Part, Unreadable
from chapterverse.ingestion.inclusion import Inclusion
from chapterverse.ingestion.inline import formula, picture, plain, styled
from chapterverse.ingestion.readers import large_tables
from chapterverse.ingestion.readers.cleaning import clean_inline, decode
from chapterverse.ingestion.readers.marks import ADMONITIONS
from chapterverse.ingestion.readers.page_builder import PageBuilder
from chapterverse.ingestion.readers.sphinx import directives as sphinx
from chapterverse.ingestion.readers.sphinx.page import Surroundings
from chapterverse.ingestion.readers.sphinx.roles import default_role

_SILENT = 5  # above docutils' most severe level
# docutils takes quadratic time for these
_MAX_LINE = 5_000  # characters; longer lines are broken at a space
_MAX_PARAGRAPH = 10_000  # characters; the markup of a longer one is not parsed
_MAX_TARGETS = 1_000  # labels before headings
_MAX_LINKS = 20_000  # references by name
_MAX_TERM = 80  # characters; a longer term is a sentence, not a term
_MAX_FACT = 200  # characters in a cell of a field's table
_MAX_FACTS = 8  # columns of a field's table

_UNSEEN = (nodes.Invisible, nodes.system_message, nodes.raw, nodes.target, nodes.label, nodes.problematic)
_STYLES: dict[type[nodes.Node], MarkKind] = {
    nodes.emphasis: "emphasis",
    nodes.title_reference: "emphasis",
    nodes.strong: "strong",
    nodes.subscript: "sub",
    nodes.superscript: "sup",
}
_PARAMETER = re.compile(r"(param|parameter|arg|argument|key|keyword|kwarg|kwparam)\s+(?:(.*)\s)?(\S+)", re.DOTALL)
_RAISED = re.compile(r"(raises?|except|exception|throws?)\s+(.+)", re.DOTALL)
_DOCTEST_FLAG = re.compile(r"(?<![ \t])[ \t]*+#[ \t]*+doctest:.*$|^[ \t]*+<BLANKLINE>[ \t]*+$", re.MULTILINE)
_FIELD_NAMES = {"returns": "Returns", "return": "Returns", "rtype": "Return type", "yields": "Yields"}


def read(document: Document) -> list[Draft]:
    """Read a reStructuredText file."""
    return [Draft("", read_text(decode(document.data), document))]


def read_text(text: str, document: Document | None = None) -> tuple[Part, ...]:
    """The parts of a text, also for reStructuredText inside of other formats."""
    inclusion = Inclusion(document) if document and document.tree else None
    around = Surroundings(document, inclusion=inclusion)
    language = around.settings.get("highlight_language", "")
    around.language = "" if language in ("default", "none") else language
    try:
        return _Reading(around).read(_parse(text, around))
    except RecursionError as error:
        raise Unreadable("nested too deeply") from error
    except Exception as error:  # docutils fails in many ways on malformed markup
        raise Unreadable(f"cannot be parsed as reStructuredText ({type(error).__name__}: {error})"[:200]) from error


@cache
def _settings() -> Any:
    settings = get_default_settings(Parser)
    settings.report_level = settings.halt_level = _SILENT
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.syntax_highlight = "none"
    settings.auto_id_prefix = "id"  # as Sphinx numbers repeated headings
    settings.line_length_limit = _MAX_LINE
    settings.warning_stream = False
    settings.rfc_base_url, settings.pep_base_url = "https://datatracker.ietf.org/doc/html/", "https://peps.python.org/"
    settings.pep_file_url_template = "pep-%04d/"
    return settings


def _inliner() -> Inliner:
    """docutils' inliner, but very long paragraphs are plain text. Not a subclass, as docutils modifies its class."""
    inliner = Inliner()
    within = inliner.parse

    def parse(text: str, *context: Any) -> Any:
        if len(text) > _MAX_PARAGRAPH:
            return [nodes.Text(text.replace("\0", "\\"))], []
        return within(text, *context)

    vars(inliner)["parse"] = parse
    return inliner


def _parse(text: str, around: Surroundings) -> nodes.document:
    given = around.settings
    text = "\n\n".join([given.get("rst_prolog", ""), text, given.get("rst_epilog", "")])
    text = "\n\n".join([text, *_substitutions(text, given)])
    text, around.tables = large_tables.lift(text)
    text = "\n".join(_broken(line) for line in text.split("\n"))
    sphinx.prepare(text, around)
    settings = copy(_settings())
    settings.surroundings = around
    document = new_document("page", settings)
    if role := default_role(given.get("default_role", "")):
        roles._roles[""] = role  # type: ignore[attr-defined]  # docutils removes it after parsing
    Parser(inliner=_inliner()).parse(text, document)
    _transform(text, document)
    return document


def _substitutions(text: str, settings: Mapping[str, str]) -> Iterator[str]:
    """Sphinx's own substitutions, which a page or the project may define otherwise."""
    for name in ("version", "release", "project"):
        if settings.get(name) and not re.search(rf"^[ \t]*\.\.[ \t]+\|{name}\|", text, re.MULTILINE):
            yield f".. |{name}| replace:: {' '.join(settings[name].split())}"


def _transform(text: str, document: nodes.document) -> None:
    """Resolve labels, substitutions, references by name and footnotes within a page."""
    wanted: list[Any] = [transforms.Substitutions]
    if text.count(".. _") <= _MAX_TARGETS:
        wanted.append(transforms.PropagateTargets)
    if text.count("`_") + text.count("_`") + len(document.refnames) <= _MAX_LINKS:
        wanted += [transforms.AnonymousHyperlinks, transforms.IndirectHyperlinks, transforms.Footnotes]
        wanted += [transforms.ExternalTargets, transforms.InternalTargets]
    for transform in wanted:
        transform(document).apply()


def _broken(line: str) -> str:
    if len(line) <= _MAX_LINE:
        return line
    indent = line[: min(len(line) - len(line.lstrip()), 100)]
    return fill(line, _MAX_LINE, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _anchor(section: nodes.section) -> str:
    """The id of a section in Sphinx's output: from its title, or from a label if the title's id is only a number."""
    ids: list[str] = section["ids"]
    numbered = len(ids) > 1 and re.fullmatch(r"id\d+", ids[0])
    return ids[1] if numbered else ids[0] if ids else ""


class _Reading:
    def __init__(self, around: Surroundings) -> None:
        self._to = PageBuilder()
        self._around = around
        self._level = 0
        self._fields = 0  # open fields of parameters, in which small tables and definitions are read as lines

    def read(self, document: nodes.document) -> tuple[Part, ...]:
        children = [child for child in document.children if not isinstance(child, nodes.Invisible)]
        if children and isinstance(children[0], nodes.field_list):  # metadata such as `:orphan:`
            del children[0]
        for child in children:
            self._block(child)
        return self._to.finish()

    def _blocks(self, node: nodes.Node | Sequence[nodes.Node]) -> None:
        for child in node.children if isinstance(node, nodes.Node) else node:
            self._block(child)

    def _block(self, node: Any) -> None:
        if isinstance(node, nodes.Invisible | nodes.comment | nodes.substitution_definition):
            return
        for kind, take in self._TAKES.items():
            if isinstance(node, kind):
                take(self, node)
                return
        if isinstance(node, _UNSEEN):
            return
        if isinstance(node, nodes.TextElement):
            self._to.paragraph(self._sentence(node))
        else:
            self._blocks(node)

    def _section(self, section: nodes.section) -> None:
        self._level += 1
        for child in section.children:
            if isinstance(child, nodes.title):
                self._to.close_all()
                self._to.heading(self._sentence(child, code=False), self._level, _anchor(section))
            else:
                self._block(child)
        self._level -= 1

    def _code(self, node: Any) -> None:
        if isinstance(node.parent, nodes.container) and "literal-block-wrapper" in node.parent.get("classes", ()):
            return
        language = node.get("language", "") or ("" if "language" in node else self._language(node))
        text = node.astext()
        if isinstance(node, nodes.doctest_block) or text.lstrip().startswith(">>>"):
            text = _DOCTEST_FLAG.sub("", text)  # as Sphinx shows it
        self._to.code(text, language, node.get("caption", ""))

    def _language(self, node: Any) -> str:
        """The language of a code block, or the default of the page."""
        named = [name for name in node.get("classes", ()) if name not in ("code", "doctest")]
        if isinstance(node, nodes.doctest_block):
            return "python"
        return named[0] if named and "code" in node["classes"] else self._around.language

    def _paragraph(self, node: Any) -> None:
        inside = [child for child in node.children if not (isinstance(child, nodes.Text) and not child.strip())]
        if inside and all(_image_in(child) for child in inside):
            for child in inside:
                self._block(child)
        else:
            self._to.paragraph(self._sentence(node))

    def _reference(self, node: Any) -> None:
        if _image_in(node):
            self._blocks(node)
        else:
            self._to.paragraph(self._sentence(node))

    def _image(self, node: Any, caption: str = "") -> None:
        self._to.image(node.get("alt", ""), self._around.target(node.get("uri", "")), caption)

    def _figure(self, node: Any) -> None:
        captions = [self._sentence(child) for child in node.children if isinstance(child, nodes.caption)]
        captions = [*self._number(node), *captions] if captions else []
        for image in node.findall(nodes.image):
            self._image(image, " ".join(captions))
            break
        for child in node.children:
            if isinstance(child, nodes.legend):
                self._blocks(child)

    def _number(self, node: Any) -> list[str]:
        """The number of a labelled figure or table, in a list; empty if the site does not number them."""
        known = (self._around.references.get(f"label:{name}") for name in node.get("names", ()))
        return [found.number for found in known if found and found.number][:1]

    def _list(self, node: Any) -> None:
        self._to.open_list(ordered=isinstance(node, nodes.enumerated_list), start=node.get("start", 1))
        for item in node.children:
            self._to.item()
            self._blocks(item)
        self._to.close_list()

    def _definitions(self, node: Any) -> None:
        """Write terms with their descriptions as fields; inside of a parameter, as lines of its field."""
        for item in node.children:
            terms = [self._sentence(child) for child in item.children if isinstance(child, nodes.term)]
            kinds = [self._sentence(child) for child in item.children if isinstance(child, nodes.classifier)]
            body = [part for child in item.children if isinstance(child, nodes.definition) for part in child.children]
            text = ", ".join(terms)
            if self._fields:
                self._led(": ".join([text, *kinds]), body)
            elif len(plain(text)) > _MAX_TERM:
                self._to.paragraph(text)
                self._blocks(body)
            else:
                self._open_field(terms, [("", kind) for kind in kinds], body, parameter=False)

    def _led(self, term: str, body: Sequence[nodes.Node]) -> None:
        """Write a term and its text on one line: `Description: The purpose.`"""
        if body and isinstance(body[0], nodes.paragraph) and not _image_in(body[0]):
            self._to.paragraph(f"{term}: {self._sentence(body[0])}")
            self._blocks(body[1:])
        else:
            self._to.paragraph(f"{term}:")
            self._blocks(body)

    def _open_field(
        self, names: Sequence[str], facts: Sequence[tuple[str, str]], body: Sequence[nodes.Node], parameter: bool = True
    ) -> None:
        self._to.open_field(", ".join(name if "`" in name else f"`{name}`" for name in names if name))
        for fact in facts:
            self._to.fact(*fact)
        around, self._fields = self._fields, self._fields + 1 if parameter else 0
        self._blocks(body)
        self._fields = around
        self._to.close_field()

    def _field_list(self, node: Any) -> None:
        for field in node.children:
            if isinstance(field, nodes.field) and len(field.children) > 1:
                self._open_field([self._sentence(field[0])], [], field[1].children)

    def _option_list(self, node: Any) -> None:
        for item in node.children:
            names = [option.astext() for option in item.findall(nodes.option)]
            body = [child for part in item.findall(nodes.description) for child in part.children]
            self._open_field(names, [], body)

    def _object(self, node: Any) -> None:
        facts = [(name, self._sentence(value)) for name, value in node["facts"]]
        body: list[nodes.Node] = []
        for child in node.children:
            if isinstance(child, nodes.field_list) and not body:
                facts += list(self._short_facts(child))
            body.append(child)
        body = [child for child in body if not (isinstance(child, nodes.field_list) and child.get("shown"))]
        fields, self._fields = self._fields, 0
        self._open_field(node["names"], facts, [_told(child) for child in body])
        self._fields = fields

    def _short_facts(self, fields: Any) -> Iterator[tuple[str, str]]:
        """The fields at the start of an object that are facts, such as `:type: bool`; none if one of them is not."""
        pairs = []
        for field in fields.children:
            name = field[0].astext()
            text = [child for child in field[1].children if isinstance(child, nodes.paragraph)]
            if len(text) != len(field[1].children) or len(text) != 1 or " " in name or name.lower() in _FIELD_NAMES:
                return
            pairs.append((name[:1].upper() + name[1:], self._sentence(text[0])))
        fields["shown"] = True
        yield from pairs

    def _argument_list(self, node: Any) -> None:
        """Write the field list of a function: arguments, return value, exceptions."""
        types = {
            field[0].astext().partition(" ")[2]: self._sentence(field[1])
            for field in node.children
            if field[0].astext().startswith("type ")
        }
        groups: dict[str, list[tuple[str, str, Any]]] = {}
        for field in node.children:
            name = " ".join(field[0].astext().split())
            if name.startswith("type "):
                continue
            if found := _PARAMETER.fullmatch(name):
                kind = found[2] or types.get(found[3], "")
                label = "Keyword Arguments" if found[1].startswith("k") else "Parameters"
                groups.setdefault(label, []).append((found[3], kind, field[1]))
            elif raised := _RAISED.fullmatch(name):
                groups.setdefault("Raises", []).append((raised[2], "", field[1]))
            else:
                label = _FIELD_NAMES.get(name.lower(), name[:1].upper() + name[1:])
                groups.setdefault(label, []).append(("", "", field[1]))
        for label, members in groups.items():
            self._group(label, members)

    def _group(self, label: str, members: Sequence[tuple[str, str, Any]]) -> None:
        named = [member for member in members if member[0]]
        for name, _, body in members:
            if not name:
                self._led(label, body.children)
        if not named:
            return
        self._to.paragraph(f"{label}:")
        self._to.open_list()
        for name, kind, body in named:
            self._to.item()
            first, *rest = body.children or [nodes.paragraph()]
            text = self._sentence(first) if isinstance(first, nodes.paragraph) else ""
            self._to.paragraph(f"`{name}`{f' ({kind})' if kind else ''}{f' – {text}' if text else ''}")
            self._blocks(rest if text or isinstance(first, nodes.paragraph) else body)
        self._to.close_list()

    def _admonition(self, node: Any) -> None:
        titles = [child for child in node.children if isinstance(child, nodes.title)]
        label = self._sentence(titles[0]) if titles else node.get("label") or node.tagname.capitalize()
        body = [child for child in node.children if not isinstance(child, nodes.title | nodes.Invisible)]
        if not body:
            self._to.paragraph(f"{label}." if label[-1:].isalnum() else label)
        elif self._fields and all(isinstance(child, nodes.paragraph) for child in body):
            self._led(label, body)  # as part of the field
        else:
            look = next((name for name in node.get("classes", ()) if name in ADMONITIONS), "")  # its colour on the site
            self._to.open_admonition(label, node.get("kind") or look or ("" if titles else node.tagname))
            self._blocks(body)
            self._to.close_admonition()

    def _topic(self, node: Any) -> None:
        """Write a topic or sidebar, with its title as a separate line. A list of the page's sections is left out."""
        if "contents" in node.get("classes", ()):
            return
        for child in node.children:
            if isinstance(child, nodes.title | nodes.subtitle):
                self._to.paragraph(styled("strong", self._sentence(child)))
            else:
                self._block(child)

    def _quote(self, node: Any) -> None:
        if not any(isinstance(child, nodes.attribution) for child in node):
            self._blocks(node)
            return
        self._to.open_quote()
        self._blocks(node)
        self._to.close_quote()

    def _footnote(self, node: Any) -> None:
        label = node[0].astext() if node.children and isinstance(node[0], nodes.label) else ""
        body = node.children[1:] if label else node.children
        if body and isinstance(body[0], nodes.paragraph):
            self._to.paragraph(f"[{label}] {self._sentence(body[0])}" if label else self._sentence(body[0]))
            body = body[1:]
        self._blocks(body)

    def _table(self, table: Any) -> None:
        if self._fields and (facts := self._table_facts(table)):
            for fact in facts:
                self._to.fact(*fact)
            return
        titles = [self._sentence(child) for child in table.children if isinstance(child, nodes.title)]
        self._to.open_table(" ".join([*self._number(table), *titles]) if titles else "")
        for row in _rows(table):
            self._to.row(head=isinstance(row.parent, nodes.thead))
            for entry in row.children:
                self._to.cell(entry.get("morerows", 0) + 1, entry.get("morecols", 0) + 1)
                self._blocks(entry)
        self._to.close_table()

    def _table_facts(self, table: Any) -> list[tuple[str, str]]:
        """The facts in a small table of a parameter, with names and values in two rows or columns; else empty."""
        rows = [[clean_inline(self._sentence(cell)) for cell in row.children] for row in _rows(table)]
        spans = any(cell.get("morecols") or cell.get("morerows") for row in _rows(table) for cell in row.children)
        if (
            spans
            or not rows
            or len(rows) > _MAX_FACTS
            or any(len(plain(text)) > _MAX_FACT for row in rows for text in row)
        ):
            return []
        if len(rows) == 2 and len(rows[0]) == len(rows[1]) <= _MAX_FACTS:
            pairs = list(zip(*rows, strict=True))
        elif all(len(row) == 2 for row in rows) and not any(isinstance(part, nodes.thead) for part in table.findall()):
            pairs = [(row[0], row[1]) for row in rows]
        else:
            return []
        return [(plain(name), value) for name, value in pairs] if all(_is_label(name) for name, _ in pairs) else []

    def _line_block(self, node: Any) -> None:
        self._to.paragraph(" ".join(self._sentence(line) for line in node.findall(nodes.line)))

    def _sentence(self, node: Any, code: bool = True) -> str:
        """The text of an inline node, with its marks. `code`: with backticks around code."""
        if isinstance(node, nodes.Text):
            return node.astext()  # without escaped spaces
        if isinstance(node, nodes.image):
            return picture(self._around.target(node.get("uri", "")), node.get("alt", ""))
        if isinstance(node, _UNSEEN):
            return _problem(node) if isinstance(node, nodes.problematic) else ""
        space = " " if isinstance(node, nodes.Element) and not isinstance(node, nodes.TextElement) else ""
        text = space.join(self._sentence(child, code) for child in node.children)
        return self._marked(node, text, code)

    def _marked(self, node: Any, text: str, code: bool) -> str:
        """The text of a node, with the mark for the kind of node."""
        if isinstance(node, nodes.literal):
            text = f"`{text}`" if code and "`" not in text and text.strip() else text
        elif isinstance(node, nodes.math):
            text = formula(node.astext())
        elif isinstance(node, nodes.footnote_reference | nodes.citation_reference):
            text = styled("footnote", f"[{node.astext()}]", node.astext())
        elif isinstance(node, nodes.reference):
            target = self._target(node)
            text = styled("link", text, target) if target else text
        elif kind := _STYLES.get(type(node)):
            text = styled(kind, text)
        return text

    def _target(self, node: Any) -> str:
        if "refuri" in node:
            return str(node["refuri"])
        document = node.document
        name = node.get("refid") or (document.nameids.get(node.get("refname", "")) if document else "")
        place = document.ids.get(name) if document and name else None
        anchor = _anchor(place) if isinstance(place, nodes.section) else name
        return f"#{anchor}" if anchor else ""

    _TAKES: ClassVar[dict[Any, Any]] = {  # the first match is used
        nodes.section: _section,
        nodes.literal_block: _code,
        nodes.doctest_block: _code,
        nodes.math_block: lambda self, node: self._to.paragraph(formula(node.astext(), block=True)),
        nodes.paragraph: _paragraph,
        nodes.reference: _reference,
        nodes.image: _image,
        nodes.figure: _figure,
        nodes.bullet_list: _list,
        nodes.enumerated_list: _list,
        nodes.definition_list: _definitions,
        nodes.field_list: _field_list,
        nodes.option_list: _option_list,
        sphinx.described: _object,
        sphinx.read_parts: lambda self, node: self._to.take(node["parts"]),
        nodes.Admonition: _admonition,
        nodes.rubric: lambda self, node: self._to.paragraph(styled("strong", self._sentence(node))),
        nodes.attribution: lambda self, node: self._to.paragraph(f"— {self._sentence(node)}"),
        nodes.topic: _topic,
        nodes.sidebar: _topic,
        nodes.block_quote: _quote,
        nodes.footnote: _footnote,
        nodes.citation: _footnote,
        nodes.table: _table,
        nodes.line_block: _line_block,
    }


class _arguments(nodes.General, nodes.Element):  # noqa: N801
    """The field list of a described object."""


def _told(node: nodes.Node) -> nodes.Node:
    if not isinstance(node, nodes.field_list):
        return node
    return _arguments("", *node.children)


_Reading._TAKES[_arguments] = _Reading._argument_list


def _image_in(node: Any) -> bool:
    """Whether a node is an image, perhaps with a link around it."""
    if isinstance(node, nodes.reference | nodes.paragraph):
        return bool(node.children) and all(_image_in(child) for child in node.children)
    return isinstance(node, nodes.image)


def _is_label(text: str) -> bool:
    """Whether a cell names a fact: a word or two."""
    return re.fullmatch(r"[^\W\d][\w /()-]{0,30}", plain(text)) is not None


def _problem(node: nodes.Node) -> str:
    """The source of markup that docutils could not resolve, without the markup characters."""
    text = node.astext()
    return text[1:-1] if re.fullmatch(r"\|[^|]+\|_{0,2}", text) and text.endswith("|") else text


def _rows(table: Any) -> Iterator[Any]:
    """The rows of a table, without the rows of tables inside of it."""
    for group in table.children:
        for part in group.children if isinstance(group, nodes.tgroup) else ():
            if isinstance(part, nodes.thead | nodes.tbody):
                yield from part.children
