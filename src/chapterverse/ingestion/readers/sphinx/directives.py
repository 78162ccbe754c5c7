"""The directives of Sphinx and its extensions, for docutils. `roles.py` has the roles.

Directives that import modules or run programs in Sphinx are left out. Files are opened only inside of the folder of the
source (`inclusion.py`). Unknown directives keep their text.
"""

import posixpath
import re
from collections.abc import Sequence
from importlib import import_module
from itertools import count, takewhile
from textwrap import dedent
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from docutils.parsers.rst.directives.parts import Contents
from docutils.parsers.rst.directives.tables import CSVTable, ListTable
from docutils.parsers.rst.languages import en as english
from docutils.parsers.rst.states import SubstitutionDef
from docutils.statemachine import StringList
from docutils.utils import unescape

from chapterverse.book import CONTENTS
from chapterverse.ingestion.document import Document, NothingToRead, Part, Unreadable
from chapterverse.ingestion.inline import styled
from chapterverse.ingestion.limits import whole_number
from chapterverse.ingestion.readers import large_tables
from chapterverse.ingestion.readers.cleaning import pipe_table
from chapterverse.ingestion.readers.included_lines import dedented, include_lines, literal_lines
from chapterverse.ingestion.readers.marks import ADMONITIONS
from chapterverse.ingestion.readers.sphinx.page import DOMAIN, DOMAINS, Surroundings, named_in, surroundings, words
from chapterverse.ingestion.readers.sphinx.roles import link, prepare_roles, raw_text
from chapterverse.ingestion.readers.sphinx.scanner import shown_in_html, toctree_key

_DIRECTIVE_NAME = re.compile(r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w:.+-]{1,60})[ \t]*::", re.MULTILINE)
_CARD_RULE = re.compile(r"(?:\^{3,}|\+{3,})\s*")
# An object with a description: `name(arguments)`, not a sentence, and text below it
_DESCRIBES = re.compile(
    r"^([ \t]*+)\.\.[ \t]+([\w:.+-]{1,60})[ \t]*::[ \t]+[A-Za-z_][\w.]*+ ?\([^\n]*+(?<![.!?\s])\n"
    r"(?:[ \t]*+\n)*+\1[ \t]+\S",
    re.MULTILINE,
)
# A sentence, list or title: punctuation after a word, or a capital letter and a second word
_PROSE = re.compile(r"[^\W_][)\"'*`]*[.!?:;,](?:\s|$)|^\W*[^\W\d_a-z]\w*\s+[^\W\d_]")
_END_OF_INCLUDE = "chapterverse-end-of-include"


_PROGRAMS = words("code code-block sourcecode testcode testoutput doctest prompt highlight-block ipython")
_LEFT_OUT = words(
    "autoattribute autoclass autodata autoenum autoexception autofunction automethod automodule autoproperty "
    "autosummary bibliography click codeauthor default-domain graphviz digraph graph ifconfig index "
    "inheritance-diagram mermaid meta minigallery plot py:module module query-param-ref redirect-from "
    "sectionauthor sectnum tabularcolumns target-notes testcleanup testsetup todolist uml cssclass "
    "moduleauthor doxygenfunction doxygenclass youtube doxygenstruct doxygenfile doxygenenum doxygendefine "
    "doxygentypedef jupyter-execute program sphinx_gallery_tags"
)
_LABELLED = words("card dropdown grid-item-card group-tab tab tab-item tabbed collapse details")
_OBJECTS = words(
    "attribute class classmethod data decorator decoratormethod describe exception function method object option "
    "property staticmethod confval envvar event cmdoption type member macro struct union enum enumerator "
    "enum-class enum-struct var concept directive directive:option role alias"
)
_SHOWN_KINDS = words("class struct union enum enum-class enum-struct enumerator concept type")
_BARE_OBJECTS = words(
    "abstractmethod attribute awaitablefunction awaitablemethod classmethod coroutinefunction coroutinemethod data "
    "decorator decoratormethod describe exception function method object option property staticmethod confval envvar "
    "event cmdoption"
)


class described(nodes.General, nodes.Element):  # noqa: N801 - as docutils names nodes
    """A described object: `names`, `facts`, and its description as children."""


class read_parts(nodes.General, nodes.Element):  # noqa: N801
    """Parts that another reader has read, in the attribute `parts`."""


class _AnyOption(dict[str, Any]):
    """Accepts every option; docutils would drop a directive with an unknown one."""

    def __missing__(self, key: str) -> Any:
        return directives.unchanged


class _Body(Directive):
    """Reads the body and leaves out the directive."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = _AnyOption(name=directives.unchanged)

    def run(self) -> list[nodes.Node]:
        return self._parsed(nodes.container()).children

    def _parsed(self, node: nodes.Element, content: StringList | None = None) -> nodes.Element:
        self.state.nested_parse(
            self.content if content is None else content, self.content_offset, node, match_titles=True
        )
        return node

    def _argument(self) -> str:
        """The argument of the directive as one line."""
        return " ".join(" ".join(self.arguments).split())

    def _spoken(self, text: str) -> nodes.paragraph:
        return nodes.paragraph("", "", *self.state.inline_text(text, self.lineno)[0])

    @property
    def _around(self) -> Surroundings:
        return surroundings(self.state.document)

    def _number(self, option: str) -> int | None:
        given = self.options.get(option)
        return int(given) if given and re.fullmatch(r"-?\d{1,7}", given) else None


class _Unknown(_Body):
    """Reads the argument of an unknown directive, too, if it is prose; otherwise it may be a style, number or path."""

    def run(self) -> list[nodes.Node]:
        argument = self._argument()
        return [*([self._spoken(argument)] if _PROSE.search(argument) else []), *super().run()]


class _LeftOut(_Body):
    def run(self) -> list[nodes.Node]:
        if self.name.endswith("module") and self.name in ("module", "py:module"):
            self._around.module = self._argument()
            return super().run()
        return []


class _Toctree(_Body):
    """The list of the pages below this one, from the references that `project.py` found."""

    def run(self) -> list[nodes.Node]:
        if "hidden" in self.options:
            return []
        references = self._around.references
        key = toctree_key("\n".join([*self.arguments, *self.content]).split("\n"), self.options)
        keys = takewhile(references.__contains__, (f"{key}:{place}" for place in count()))
        pages = [references[key] for key in keys]
        text = "\n".join(f"- {styled('link', page.title, page.address)}" for page in pages if page.title)
        return [read_parts(parts=(Part("list", text, info=CONTENTS),))] if text else []


class _CurrentModule(_Body):
    def run(self) -> list[nodes.Node]:
        self._around.module = "" if self._argument() == "None" else self._argument()
        return []


class _Highlight(_Body):
    def run(self) -> list[nodes.Node]:
        self._around.language = self._argument().split(" ")[0]
        return []


class _Program(_Body):
    def run(self) -> list[nodes.Node]:
        if "hide" in self.options:
            return []
        given = "\n".join(self.arguments).split("\n")  # code right below the name; an error in Sphinx
        language = given[0].split(" ")[0] or self._around.language
        if self.name in ("testcode", "doctest"):  # the argument is a group of tests
            language = "python"
        lines = [*given[1:], *self.content]
        if self.name == "prompt":
            language, lines = language or "bash", [line for line in lines if not line.startswith(":")]
        text = "\n".join(lines)
        if "dedent" in self.options:
            text = dedented(text, self._number("dedent"))
        return [nodes.literal_block(text=text, language=language, caption=self.options.get("caption", ""))]


class _ParsedLiteral(_Body):
    def run(self) -> list[nodes.Node]:
        text = "\n".join([*"\n".join(self.arguments).split("\n"), *self.content] if self.arguments else self.content)
        return [nodes.literal_block("", "", *self.state.inline_text(text, self.lineno)[0], language="")]


class _Grammar(_Body):
    """The rules of a grammar, as code. A first line without a colon is the name of their group, and left out."""

    def run(self) -> list[nodes.Node]:
        lines = "\n".join([*self.arguments, *self.content]).split("\n")
        return [nodes.literal_block(text="\n".join(lines if ":" in lines[0] else lines[1:]), language="")]


class _CodeTab(_Program):
    def run(self) -> list[nodes.Node]:
        label = self._argument().partition(" ")[2]
        return [*([nodes.paragraph(text=f"{label}:")] if label else []), *super().run()]


class _Labelled(_Body):
    def run(self) -> list[nodes.Node]:
        label = [self._label()] if self.arguments else []
        ruled = self.name in ("card", "grid-item-card")  # between head, body and foot
        lines = ["" if ruled and _CARD_RULE.fullmatch(line) else line for line in self.content]
        body = self._parsed(nodes.container(), StringList(lines, source="card"))
        return [*label, *body.children]

    def _label(self) -> nodes.paragraph:
        """The title of a card or tab; a card may have a link."""
        text, target = self._spoken(f"{self._argument()}:"), self.options.get("link", "")
        if not target:
            return text
        found = named_in(self._around, target)
        address = found.address if found else target if "://" in target else ""
        return nodes.paragraph("", "", nodes.reference("", "", *text.children, refuri=address)) if address else text


class _Button(_Body):
    def run(self) -> list[nodes.Node]:
        target, text = self._argument(), " ".join(self.content)
        if self.name == "button-link":
            return [nodes.paragraph("", "", nodes.reference("", text or target, refuri=target))]
        found = named_in(self._around, target)
        return [nodes.paragraph("", "", link(text or (found.title if found else target), found))]


class _Centered(_Body):
    def run(self) -> list[nodes.Node]:
        text = self._spoken(self._argument())
        return [nodes.paragraph("", "", nodes.strong("", "", *text.children)), *super().run()]


class _Only(_Body):
    def run(self) -> list[nodes.Node]:
        return super().run() if shown_in_html(self._argument()) else []


class _Todo(_Body):
    def run(self) -> list[nodes.Node]:
        if self._around.settings.get("todo_include_todos") != "yes":
            return []
        return [self._parsed(nodes.admonition(label="Todo", kind="todo"))]


class _Object(_Body):
    """A function, class, option or setting: its signatures, facts and text."""

    def run(self) -> list[nodes.Node]:
        around = self._around
        kind = DOMAIN.sub("", self.name)
        given = re.sub(r"\\\n\s*", "", "\n".join(self.arguments)).split("\n")
        if kind in ("option", "cmdoption"):
            given = [name for names in given for name in names.split(", ")]
        names = [self._shown(kind, unescape(name.strip())) for name in given if name.strip()]
        facts = [] if kind not in ("confval", "directive:option") else self._facts()
        node = described(names=names, facts=facts, kind=kind)
        nests = kind in ("class", "exception")
        around.classes += nests
        self._parsed(node)
        around.classes -= nests
        return [node]

    def _facts(self) -> list[tuple[str, nodes.Element]]:
        pairs = (("Type", self.options.get("type")), ("Default", self.options.get("default")))
        return [(name, self._spoken(value)) for name, value in pairs if value]

    def _shown(self, kind: str, signature: str) -> str:
        """A signature as Sphinx shows it."""
        if kind == "directive":
            return (
                signature
                if signature.startswith("..")
                else f".. {signature.replace(' ', ':: ', 1)}" + ("" if " " in signature else "::")
            )
        if kind in ("role", "directive:option") and not signature.startswith(":"):
            name, _, rest = signature.partition(": ")
            return f":{name.rstrip(':')}: {rest}".rstrip()
        if self.name.startswith(("c:", "cpp:", "js:class")) and kind in _SHOWN_KINDS:
            return f"{kind.replace('-', ' ')} {signature}"
        python = self.name == kind or self.name.startswith("py:")
        if not python or kind in ("option", "cmdoption", "confval", "envvar", "event", "describe", "object"):
            return signature
        name = re.split(r"[(\s\[]", signature, maxsplit=1)[0]
        module = self._around.module if self._around.settings.get("add_module_names") != "no" else ""
        if module and "." not in name and not self._around.classes:
            signature = f"{module}.{signature}"
        signature += f": {self.options['type']}" if self.options.get("type") else ""
        signature += f" = {self.options['value']}" if self.options.get("value") else ""
        before = {"class": "class ", "exception": "exception ", "classmethod": "classmethod ", "property": "property "}
        signs = [
            word for word in ("abstract", "async", "classmethod", "static", "staticmethod") if word in self.options
        ]
        shown = "".join(f"{word.replace('method', '') if word[0] == 's' else word} " for word in signs)
        sign = {"staticmethod": "static ", "decorator": "@", "decoratormethod": "@"}.get(kind, before.get(kind, ""))
        return f"{shown}{sign}{signature}"


class _OwnObject(_Object):
    """An object of a kind that the project's own extension adds."""

    def _shown(self, kind: str, signature: str) -> str:
        return signature


class _Class(_Object):
    """Describes a Python class in a Sphinx project, or if the argument looks like a class. Otherwise it is the
    `class` of docutils, which only sets a style; its names are in lower case."""

    def run(self) -> list[nodes.Node]:
        document = self._around.document
        in_sphinx = document is not None and document.tree is not None and document.tree.generator == "sphinx"
        is_class = in_sphinx or re.search(r"[A-Z(.]", self._argument()) is not None
        return super().run() if is_class else list(self._parsed(nodes.container()).children)


class _Version(_Body):
    def run(self) -> list[nodes.Node]:
        version, _, rest = self._argument().partition(" ")
        node = nodes.admonition(label=f"{VERSIONS[self.name]} {version}", kind=self.name)
        if rest:
            node += self._spoken(rest)
        return [self._parsed(node)]


VERSIONS = {name: label for name, label in ADMONITIONS.items() if label.endswith(" version")}


class _SeeAlso(_Body):
    def run(self) -> list[nodes.Node]:
        node = nodes.admonition(label=ADMONITIONS.get(self.name, "Note"), kind=self.name)
        if self.arguments:
            node += self._spoken(self._argument())
        return [self._parsed(node)]


class _Glossary(_Body):
    """Terms with their descriptions. Several terms may share a description."""

    def run(self) -> list[nodes.Node]:
        found = nodes.definition_list()
        terms: list[nodes.term] = []
        lines, place = list(self.content), 0
        while place < len(lines):
            line = lines[place]
            place += 1
            if not line.strip() or line.startswith(".. "):
                continue
            if not line[0].isspace():
                if terms and terms[-1].get("done"):
                    terms = []
                text = re.split(r"(?<!\s)\s++:\s++", line.strip())[0]
                terms.append(nodes.term("", "", *self.state.inline_text(text, self.lineno)[0]))
                continue
            end = place
            while end < len(lines) and (not lines[end].strip() or lines[end][0].isspace()):
                end += 1
            body = StringList(dedent("\n".join(lines[place - 1 : end])).split("\n"), source="glossary")
            found += nodes.definition_list_item("", *terms, self._parsed(nodes.definition(), body))
            place, terms = end, []
        return [found]


class _Include(_Body):
    """The text of another file."""

    def run(self) -> list[nodes.Node]:
        included = self._around.open(self.arguments[0].strip("<>")) if self.arguments else None
        if included is None:
            return []
        lines = include_lines(included.text.split("\n"), self.options)
        if lines is None:
            return []
        if "literal" in self.options or "code" in self.options:
            return [nodes.literal_block(text="\n".join(lines), language=self.options.get("code", ""))]
        if self.options.get("parser", "").startswith("myst") or included.path.suffix == ".md":
            from chapterverse.ingestion.readers.markdown import read

            document = Document("", included.path.name, "", "markdown", "\n".join(lines).encode(), "sphinx")
            return [read_parts(parts=read(document)[0].parts)]
        prepare("\n".join(lines), self._around)
        opened = self._around.inclusion.inside(included) if self._around.inclusion else None
        if opened:
            opened.__enter__()
            self._around.opened.append(opened)
        lines = [line.expandtabs(8).rstrip() for line in lines]
        self.state_machine.insert_input([*lines, "", f".. {_END_OF_INCLUDE}::", ""], str(included.path.name))
        return []


class _Raw(_Body):
    """Reads HTML like an HTML page, without scripts, styles, headings and hidden text. Leaves out other formats."""

    def run(self) -> list[nodes.Node]:
        if isinstance(self.state, SubstitutionDef):
            return [raw_text("\n".join(self.content), self._argument())]
        if "html" not in self._argument().split() or "file" in self.options or "url" in self.options:
            return []
        from chapterverse.ingestion.readers import html

        try:
            parts = html.draft_of(html.parse("\n".join(self.content)), whole=True).parts
        except (NothingToRead, Unreadable):
            return []
        return [read_parts(parts=tuple(part for part in parts if part.kind != "heading"))]


class _EndOfInclude(_Body):
    def run(self) -> list[nodes.Node]:
        if self._around.opened:
            self._around.opened.pop().__exit__(None, None, None)
        return []


class _LiteralInclude(_Body):
    def run(self) -> list[nodes.Node]:
        included = self._around.open(self.arguments[0]) if self.arguments else None
        lines = literal_lines(included.text, self.options) if included else None
        if lines is None:
            return []
        text = "\n".join(lines)
        if "dedent" in self.options:
            text = dedented(text, self._number("dedent"))
        if "diff" in self.options:
            return []
        language, caption = self.options.get("language") or self._around.language, self.options.get("caption")
        caption = posixpath.basename(self.arguments[0]) if caption == "" else caption or ""
        return [nodes.literal_block(text=text, language=language, caption=caption)]


class _CsvTable(CSVTable):
    """A table whose rows may be in another file of the source."""

    _lines: Sequence[str] = ()

    def get_csv_data(self) -> tuple[list[str], str]:
        return list(self._lines or self.content), "table"

    def run(self) -> Any:
        if "url" in self.options or ("file" in self.options and self.content):
            return []
        wanted = self.options.pop("file", "")  # docutils refuses the option
        if wanted:
            included = surroundings(self.state.document).open(wanted)
            self._lines = included.text.split("\n") if included else []
        lines = self._lines or self.content
        if len(lines) > large_tables.MANY_LINES:
            header = large_tables.csv_rows(self.options.get("header", "").split("\n"), self._delimiter())
            rows = large_tables.csv_rows(list(lines), self._delimiter())
            return [_whole_table([*header, *rows], len(header) + self.options.get("header-rows", 0))]
        return super().run() if lines else []

    def _delimiter(self) -> str:
        given = self.options.get("delim", ",")
        return given if isinstance(given, str) else ","


class _ListTable(ListTable):
    def run(self) -> Any:
        if len(self.content) <= large_tables.MANY_LINES:
            return super().run()
        return [_whole_table(large_tables.list_rows(list(self.content)), self.options.get("header-rows", 0))]


class _LargeTable(_Body):
    def run(self) -> list[nodes.Node]:
        tables = self._around.tables
        number = whole_number(self._argument(), len(tables))
        return [read_parts(parts=(Part("table", tables[number]),))] if number < len(tables) else []


def _whole_table(rows: Sequence[Sequence[str]], heads: int) -> read_parts:
    text = pipe_table(rows, heads)
    return read_parts(parts=(Part("table", text),) if text else ())


_DIRECTIVES: dict[type[Directive], list[str]] = {
    _LeftOut: _LEFT_OUT,
    _Toctree: ["toctree"],
    _CurrentModule: ["currentmodule", "py:currentmodule"],
    _Highlight: ["highlight"],
    _Program: _PROGRAMS,
    _ParsedLiteral: ["parsed-literal"],
    _Grammar: ["productionlist"],
    _CodeTab: ["code-tab"],
    _Labelled: _LABELLED,
    _Button: ["button-link", "button-ref"],
    _Centered: ["centered"],
    _Only: ["only"],
    _Todo: ["todo"],
    _Object: [*(f"{domain}:{name}" for name in _OBJECTS for domain in DOMAINS), *_BARE_OBJECTS],
    _Class: ["class"],
    _Version: list(VERSIONS),
    _SeeAlso: ["seealso"],
    _Glossary: ["glossary"],
    _Include: ["include"],
    _Raw: ["raw"],
    _EndOfInclude: [_END_OF_INCLUDE],
    _LiteralInclude: ["literalinclude"],
    _CsvTable: ["csv-table"],
    _ListTable: ["list-table"],
    _LargeTable: [large_tables.DIRECTIVE],
    Contents: ["contents"],  # the reader leaves it out, but it affects the numbers in docutils' anchors
}


def _register_directives() -> set[str]:
    for kind, names in _DIRECTIVES.items():
        for name in names:
            directives.register_directive(name, kind)
    return {name for names in _DIRECTIVES.values() for name in names}


_directives = _register_directives()


def _forgiving(name: str) -> type[Directive]:
    """A directive of docutils that accepts any option. docutils would drop a directive with an option that only Sphinx
    has, such as `label` of `math`."""
    module, kind = directives._directive_registry[english.directives[name]]  # type: ignore[attr-defined]
    found: type[Directive] = getattr(import_module(f"docutils.parsers.rst.directives.{module}"), kind)
    return type(kind, (found,), {"option_spec": _AnyOption(found.option_spec or {})})


def prepare(text: str, around: Surroundings) -> None:
    """Register every directive and role in a text, so that the text of unknown ones is kept. Those of the page stay as
    they are in the files that it includes."""
    objects = {found.lower() for _, found in _DESCRIBES.findall(text)}
    names = {found.lower() for found in _DIRECTIVE_NAME.findall(text)} - _directives - around.directives
    around.directives |= names
    for name in names:
        if name in english.directives:
            directives.register_directive(name, _forgiving(name))
            _directives.add(name)
        else:  # differs from page to page
            directives.register_directive(name, _OwnObject if name in objects else _Unknown)
    prepare_roles(text)
