"""Reads Markdown: CommonMark, GitHub, Docusaurus MDX, MkDocs, mdBook, Hugo, VitePress, Starlight and MyST.

Converts markdown-it's tokens to the parts of a page. Files are included only through `inclusion.py`; no code is run.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from textwrap import dedent
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, html_block
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.dollarmath.index import math_inline_dollar
from mdit_py_plugins.footnote import footnote_plugin

from chapterverse.book import MarkKind
from chapterverse.ingestion.document import Document, Draft, Generator, NothingToRead, Part, Unreadable
from chapterverse.ingestion.generators import slug_in
from chapterverse.ingestion.inclusion import Inclusion
from chapterverse.ingestion.inline import formula
from chapterverse.ingestion.ordering import title_of_path
from chapterverse.ingestion.readers import dialects, fences, frontmatter, includes, marks, mdx, myst
from chapterverse.ingestion.readers.cleaning import clean_inline, decode
from chapterverse.ingestion.readers.included_lines import include_lines, literal_lines
from chapterverse.ingestion.readers.page_builder import PageBuilder
from chapterverse.ingestion.readers.rawhtml import RawHtml
from chapterverse.ingestion.readers.sentence import Sentence

_MAX_INLINE = 10_000  # characters; a longer paragraph is plain text, because inline rules are not linear
_MAX_UNCLOSED = 100  # brackets; the parser searches from each to the end of the paragraph
_MAX_DEPTH = 8  # of directives inside directives

_HEADING_ATTRIBUTES = re.compile(r"(?<!\s)\s*+\{:?([^{}]{1,500})\}\s*+$")
_ID = re.compile(r"""(?:^|\s)(?:#([^\s{}"']+)|id=["']?([^\s"']+))""")
_ROLE = re.compile(r"\{([\w:.+-]+)\}$")
_ALERT = re.compile(r"\[!(\w+)\][+-]?[ \t]*")
_BOX = re.compile(r"\[([ xX])\]\s+")  # of a task, at the start of a list item
_ADMONISH = re.compile(r"""admonish(?:[ \t]++(\w++)(?![=\w]))?(?:[ \t]++title=["']([^"']*+)["'])?[^\n]*+""")  # mdBook
_DIRECTIVE = re.compile(r"\{([\w:.-]++)\}\s*+(.*)")
_OPTIONS = re.compile(r"---\n[\s\S]*?\n---\n|(?:[ \t]*:[\w-]+:.*\n?)+")
_FORMULA = re.compile(r"[\\^]|[\w)\]}]\$\Z")  # other text between two dollars may be between two variables
_WORD = re.compile(r"\w", re.ASCII)
_DEFINITION = re.compile(r"^[ ]{0,3}\[([^\[\]\n]{1,300})\]:.*(?:\n+(?:[ ]{4}|\t).*)*", re.MULTILINE)
_REFERENCE = re.compile(r"\[([^\[\]\n]{1,300})\]")
_TOC = re.compile(r"\[\[?_?toc_?\]?\]|\$\{toc\}", re.IGNORECASE)
_ATTRIBUTES = re.compile(
    r"\{:?[ \t]*+(?:(?:[.#][\w:-]++|[\w:-]++=(?:\"[^\"{}]*+\"|'[^'{}]*+'|[^\s\"'{}]++))[ \t]*+)++\}"
)
_EMOJI = re.compile(rf"(?<![\w:]):[a-z0-9+][a-z0-9_+-]*:(?![\w:])(?:{_ATTRIBUTES.pattern})?")  # :smile:
_KEYS = re.compile(r"(?<![\w+])\+\+(\w[\w-]*(?:\+\w[\w-]*)+)\+\+(?![\w+])")  # MkDocs: ++ctrl+c++
_WRAPPED = re.compile(r"(?<!\S)(==|\^\^|\+\+)(?=\S)([^=^+\n]{1,300}?)(?<=\S)\1")
_PROGRAMS = {"code-block", "code", "code-cell", "sourcecode", "testcode", "testoutput", "doctest", "prompt", "mermaid"}
_UNREAD = {"toctree", "contents", "raw", "button-ref", "button-link", "bibliography"}
_LABELLED = {"dropdown", "tab-item", "card", "grid-item-card", "tab"}
_STRUCTURE: dict[str, Callable[[PageBuilder], None]] = {
    "bullet_list_open": PageBuilder.open_list,
    "list_item_open": PageBuilder.item,
    "bullet_list_close": PageBuilder.close_list,
    "ordered_list_close": PageBuilder.close_list,
    "dl_close": PageBuilder.close_field,
    "table_open": PageBuilder.open_table,
    "tr_open": PageBuilder.row,
    "td_open": PageBuilder.cell,
    "th_open": PageBuilder.cell,
    "table_close": PageBuilder.close_table,
}
_MARKED: dict[str, MarkKind] = {"em": "emphasis", "strong": "strong", "link": "link", "sub": "sub", "sup": "sup"}


def read(document: Document) -> list[Draft]:
    """Read a Markdown or MDX file."""
    return read_cells(document, [decode(document.data)])


def read_cells(document: Document, cells: Sequence[str | Part]) -> list[Draft]:
    """Read the cells of a notebook: each Markdown text by itself, between parts that are complete. The first text may
    begin with front matter."""
    matter, first = frontmatter.split(cells[0] if isinstance(cells[0], str) else "")
    if matter.draft:
        raise NothingToRead("marked as a draft")
    inclusion = Inclusion(document)
    parts: list[Part] = []
    try:
        for cell in _with_definitions([first, *(cells[1:] if isinstance(cells[0], str) else cells)]):
            parts += [cell] if isinstance(cell, Part) else _Reading(document, inclusion, matter.values).read(cell)
    except RecursionError as error:
        raise Unreadable("nested too deeply") from error
    title = _shown_title(parts, document) or matter.title or _named_title(document)
    slug = slug_in(matter.values, document.path, document.tree.generator if document.tree else "plain")
    return [Draft(title, tuple(parts), number=matter.number, slug=slug)]


def _with_definitions(cells: Sequence[str | Part]) -> Iterator[str | Part]:
    """The cells, each after the definitions of links and notes that it uses and that other cells have."""
    defined: list[dict[str, str]] = []
    for cell in cells:
        text = cell if isinstance(cell, str) and len(cells) > 1 else ""
        prose = "".join(piece for code, piece in dialects.programs(text) if not code)
        defined.append({dialects.label_of(found[1]): found[0] for found in _DEFINITION.finditer(prose)})
    known = {name: text for own in reversed(defined) for name, text in own.items()}  # the first definition counts
    for cell, own in zip(cells, defined, strict=True):
        used = map(dialects.label_of, _REFERENCE.findall(cell)) if isinstance(cell, str) and known else ()
        others = [known[name] for name in dict.fromkeys(used) if name in known and name not in own]
        yield "\n\n".join((*others, cell)) if isinstance(cell, str) else cell


def _shown_title(parts: Sequence[Part], document: Document) -> str:
    """The first heading, if the generator shows it as the title regardless of the front matter; else empty."""
    shows = document.tree is not None and document.tree.generator in ("mkdocs", "docusaurus", "vitepress", "mdbook")
    first = next((part for part in parts if part.kind == "heading"), None)
    return first.text if shows and first is not None and first.level == 1 else ""


def _named_title(document: Document) -> str:
    """The title that MkDocs and Docusaurus derive from the file name for a page without one; else empty."""
    generator = document.tree.generator if document.tree else "plain"
    return title_of_path(document.path) if generator in ("mkdocs", "docusaurus") else ""


def read_text(text: str) -> tuple[Part, ...]:
    """The parts of Markdown inside of another format. Includes are not expanded."""
    document = Document("", "", "", "markdown", b"")
    return _Reading(document, Inclusion(document)).read(text)


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text without the extensions of a generator, for reading lists of links."""
    return _parser(jsx=False, generator="plain").parse(text)


def _mark_rule(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    start = state.bMarks[line] + state.tShift[line]
    if not state.src.startswith(marks.SENTINEL, start):
        return False
    if not silent:
        token = state.push("mark", "", 0)
        token.content = state.src[start : state.eMarks[line]]
        state.line = line + 1
    return True


def _html_rule(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """Read a block of HTML like markdown-it's rule, but not only to a blank line inside of a `<pre>`."""
    if not html_block(state, line, end, silent):
        return False
    while not silent and state.line < end and state.bMarks[state.line] <= state.env.get("last_pre", -1):
        block = state.tokens[-1]
        if not fences.leaves_pre_open(block.content):
            break
        begin, in_pre = state.line, True
        while state.line < end and (in_pre or not state.isEmpty(state.line)):
            if not state.isEmpty(state.line) and state.sCount[state.line] < state.blkIndent:
                break
            in_pre = in_pre and "</pre" not in state.src[state.bMarks[state.line] : state.eMarks[state.line]].lower()
            state.line += 1
        if state.line == begin:
            break
        block.content += state.getLines(begin, state.line, state.blkIndent, True)
        block.map = [line, state.line]
    return True


def _inline_rule(state: StateCore) -> None:
    """Parse inline markup like markdown-it's rule, but keep very long paragraphs as plain text."""
    for token in state.tokens:
        if token.type == "inline":
            token.children = []
            unclosed = token.content.count("[") - token.content.count("]")
            if len(token.content) <= _MAX_INLINE and unclosed <= _MAX_UNCLOSED:
                state.md.inline.parse(token.content, state.md, state.env, token.children)
            else:
                token.children.append(Token("text", "", 0, content=token.content))


def _last_definition_rule(state: StateCore) -> None:
    """Use the last definition of a reference, as in Python-Markdown; CommonMark uses the first."""
    for repeated in state.env.pop("duplicate_refs", []):
        state.env["references"][repeated["label"]] = repeated


_dollars = math_inline_dollar(allow_digits=False, allow_double=True)


def _math_rule(state: StateInline, silent: bool) -> bool:
    """Read a formula like the plug-in's rule, but not between two variables: `$HOME/$USER` has none."""
    start = state.pos
    found, end = _dollars(state, True), state.pos
    state.pos = start
    if not found or (_WORD.match(state.src, end) and not _FORMULA.search(state.src, start, end)):
        return False
    return _dollars(state, silent)


@cache
def _parser(jsx: bool, generator: Generator) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": 30}).enable(["table", "strikethrough"])
    parser.use(deflist_plugin).use(footnote_plugin, inline=False).use(dollarmath_plugin, double_inline=True)
    parser.inline.ruler.at("math_inline", _math_rule)
    if generator == "mkdocs":
        from mdit_py_plugins.subscript import sub_plugin
        from mdit_py_plugins.superscript import superscript_plugin

        parser.use(sub_plugin).use(superscript_plugin)
        parser.core.ruler.before("inline", "last_definition", _last_definition_rule)
    else:
        from mdit_py_plugins.gfm_autolink import gfm_autolink_plugin

        parser.use(gfm_autolink_plugin)
    parser.block.ruler.before("code", "mark", _mark_rule, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    parser.block.ruler.at("html_block", _html_rule, {"alt": ["paragraph", "reference", "blockquote"]})
    parser.core.ruler.at("inline", _inline_rule)
    if jsx:  # indented text in a component is not code
        parser.disable("code")
    return parser


class _Reading:
    """Converts the tokens of one page to parts."""

    def __init__(self, document: Document, inclusion: Inclusion, values: Mapping[str, str] | None = None) -> None:
        self._jsx = document.format == "mdx"
        self._document = document
        self._level = 0  # of the current heading
        self._generator: Generator = document.tree.generator if document.tree else "plain"
        self._mkdocs = document.anchors == "mkdocs"
        self._inclusion = inclusion
        self._to = PageBuilder()
        self._html = RawHtml(self._to, values if self._generator == "vitepress" else None)
        self._open: list[str] = []  # kinds of the open marks
        self._alerts: list[bool] = []  # for each open quote, whether it is an alert
        self._terms: list[str] = []  # of the definition that follows
        self._note = ""  # label of the footnote whose text follows
        self._begins_item = False  # whether the current paragraph is the first of a list item
        self._env: dict[str, Any] = {}  # targets of the page's reference links
        self._references = document.references
        self._settings = document.settings
        self._folder = posixpath.dirname(document.path)
        self._depth = 0

    def read(self, text: str) -> tuple[Part, ...]:
        self._walk(text)
        return self._to.finish()

    def _walk(self, text: str) -> None:
        text = includes.expand(marks.unmarked(text), self._inclusion)
        if self._jsx:
            text = mdx.strip(text, self._inclusion)
        generator: Generator = "mkdocs" if self._mkdocs else "plain"
        if self._generator == "sphinx":
            text = "".join(piece if code else myst.prepared(piece) for code, piece in dialects.programs(text))
        env = self._inner_env() if self._depth else self._env
        text = dialects.rewrite(text, self._settings)
        env["last_pre"] = fences.last_pre(text)
        tokens = _parser(self._jsx, generator).parse(text, env)
        for place, token in enumerate(tokens):
            if token.type == "html_block":
                self._html.block(token.content)
            elif not self._html.hiding:
                self._token(token, tokens, place)

    def _inner_env(self) -> dict[str, Any]:
        """The link and footnote definitions of the page, for parsing the text of a directive."""
        known = self._env.get("footnotes", {}).get("refs", {})
        return self._env | {"footnotes": {"refs": dict.fromkeys(known, -1)}}

    def _token(self, token: Token, tokens: Sequence[Token], place: int) -> None:
        match token.type:
            case "inline":
                self._begins_item = tokens[max(place - 2, 0)].type == "list_item_open"
                self._inline(token, tokens[place - 1])
            case "fence":
                self._fence(token)
            case "code_block":  # Python-Markdown: indented by four more than the list item
                self._to.code(dedent(token.content) if self._mkdocs and token.level else token.content)
            case "math_block" | "math_block_label":
                self._to.paragraph(formula(token.content, block=True))
            case "ordered_list_open":
                self._to.open_list(ordered=True, start=int(token.attrGet("start") or 1))
            case "blockquote_open" | "blockquote_close":
                self._quote(token, tokens[place + 2 : place + 3])
            case "mark":
                self._mark(marks.parse(token.content))
            case "dd_open" if tokens[place - 1].type != "dd_close":  # else it continues the definition
                self._to.open_field(", ".join(self._terms))
                self._terms.clear()
            case "dd_close" if tokens[place + 1].type != "dd_open":
                self._to.close_field()
            case "footnote_open" if not self._depth:  # notes are at the end of the page
                self._note = str(token.meta.get("label") or token.meta.get("id", 0) + 1)
            case kind if kind in _STRUCTURE:
                _STRUCTURE[kind](self._to)

    def _inline(self, token: Token, before: Token) -> None:
        children = token.children or []
        if before.type == "heading_open":
            self._heading(children, before)
        elif before.type == "dt_open":
            self._terms.append(clean_inline(self._sentence(children)))
        elif _TOC.fullmatch(token.content.strip()):
            return
        elif pictures := _only_images(children):
            for picture in pictures:
                self._to.image(_alternative(picture), str(picture.attrGet("src") or ""))
        else:
            self._paragraph(children)

    def _paragraph(self, children: Sequence[Token]) -> None:
        note, self._note = self._note, ""
        text = self._sentence(children, note=note)
        if self._alerts and self._alerts[-1] and text.startswith("[!"):
            text = _ALERT.sub("", text, count=1)
        if self._begins_item and (box := _BOX.match(text)):
            text = f"{'☐' if box[1] == ' ' else '☑'} {text[box.end() :]}"
        self._to.paragraph(text)

    def _heading(self, children: Sequence[Token], before: Token) -> None:
        text = self._sentence(children, bare=True)
        anchor = ""
        if explicit := _heading_attributes(text, self._mkdocs):
            found = _ID.search(explicit[1])
            text, anchor = text[: explicit.start()], (found[1] or found[2]) if found else ""
        if before.level == 0:
            self._to.close_all()
            self._open.clear()
        self._level = int(before.tag[1])
        self._to.heading(text, self._level, anchor)

    def _sentence(self, children: Sequence[Token], bare: bool = False, note: str = "") -> str:
        """The text of inline tokens with its marks. `bare`: without backticks around code, for headings."""
        text = Sentence(bare)
        if note:
            text.note(note)
        for place, child in enumerate(children):
            if child.type == "html_inline":
                self._html.inline(child.content, text)
            elif child.type == "link_open" and [following.type for following in children[place + 1 : place + 2]] == [
                "link_close"
            ]:
                target = str(child.attrGet("href") or "").removeprefix("#").removesuffix(".md")
                text.say(myst.role("any", target, self._references, self._folder) if self._references else "")
            elif not self._html.hiding and child.type == "text":
                shown = child.content if bare or self._jsx else self._without_attributes(children, place)
                text.say(self._visible(shown))
            elif not self._html.hiding:
                self._say(child, text)
        self._html.end_sentence()
        return text.take()

    def _say(self, child: Token, said: Sentence) -> None:
        kind, _, end = child.type.rpartition("_")
        match child.type:
            case "code_inline":
                self._say_code(child.content, said)
            case "math_inline" | "math_inline_double":
                said.say(formula(child.content, block=child.type == "math_inline_double"))
            case "image":
                said.image(str(child.attrGet("src") or ""), _alternative(child))
            case "softbreak" | "hardbreak":
                said.say(" ")
            case "footnote_ref":
                said.note(str(child.meta.get("label") or child.meta.get("id", 0) + 1))
            case _ if kind in _MARKED and end == "open":
                target = str(child.attrGet("href") or "")
                said.open(kind, _MARKED[kind], myst.link(target, self._references, self._folder) if target else "")
            case _ if kind in _MARKED and end == "close":
                said.close(kind)
            case _:
                said.say(child.content)

    def _without_attributes(self, children: Sequence[Token], place: int) -> str:
        """The text of a token without the attribute lists in it: after an element, on a line of their own, or at the
        end of a block."""
        text = children[place].content
        before = children[place - 1].type if place else "softbreak"
        after = children[place + 1].type if place + 1 < len(children) else ""
        if "{" not in text:
            return text
        if before in ("code_inline", "image") or before.endswith("_close"):
            found = _ATTRIBUTES.match(text)
            text = text[found.end() :] if found else text
        elif before == "softbreak" and after in ("softbreak", "") and _ATTRIBUTES.fullmatch(text.strip()):
            return ""
        head, brace, tail = text.rpartition(" {")
        ends = not after and (self._mkdocs or self._generator == "vitepress" or tail.startswith(":"))
        return head if ends and brace and _ATTRIBUTES.fullmatch(f"{{{tail.rstrip()}") else text

    def _visible(self, text: str) -> str:
        """The text without icon names and other syntax that only the site generator uses."""
        if self._mkdocs or self._generator == "docusaurus":
            text = _EMOJI.sub("", text)
        if self._mkdocs and "++" in text:
            text = _KEYS.sub(lambda keys: "+".join(map(str.capitalize, keys[1].split("+"))), text)
        return _WRAPPED.sub(r"\2", text) if self._mkdocs else text

    def _say_code(self, code: str, said: Sentence) -> None:
        before = said.unsay()
        if not self._jsx and (role := _ROLE.search(before)):  # MyST: {ref}`text <target>`
            said.say(before[: role.start()])
            said.say(myst.role(role[1], code, self._references, self._folder))
            return
        said.say(before)
        if self._mkdocs:  # pymdownx: `#!python print()` names the language
            code = re.sub(r"^(?:#!|:::)[\w+-]+[ \t]+(?=\S)", "", code)
        said.code(code)

    def _quote(self, token: Token, first: Sequence[Token]) -> None:
        if token.nesting > 0:
            alert = _ALERT.match(first[0].content) if first and first[0].type == "inline" else None
            self._alerts.append(bool(alert))
            if alert:
                name = alert[1].lower()
                self._to.open_admonition(marks.ADMONITIONS.get(name, alert[1].capitalize()), name)
            else:
                self._to.open_quote()
        elif self._alerts and self._alerts.pop():
            self._to.close_admonition()
        else:
            self._to.close_quote()

    def _mark(self, mark: marks.LineMark) -> None:
        if mark.kind == "end":
            if self._open and self._open.pop() == "admonition":
                self._to.close_admonition()
            return
        if mark.kind == "admonition":
            self._to.open_admonition(self._title(mark.label), mark.name)
            self._to.paragraph(self._title(mark.begins))
        elif mark.label:
            self._to.paragraph(f"{self._title(mark.label)}:")
        if mark.kind != "label":
            self._open.append(mark.kind)

    def _title(self, text: str) -> str:
        """The text of one line of Markdown, with its marks."""
        generator: Generator = "mkdocs" if self._mkdocs else "plain"
        tokens = _parser(self._jsx, generator).parseInline(text[:_MAX_INLINE], self._env)
        return self._sentence([child for token in tokens for child in token.children or []]).rstrip()

    def _fence(self, token: Token) -> None:
        info = token.info.strip()
        directive = _DIRECTIVE.fullmatch(info)
        if (box := _ADMONISH.fullmatch(info)) and self._depth < _MAX_DEPTH:
            self._depth += 1
            self._mark(marks.opening(box[1] or "note", box[2] or ""))
            self._walk(token.content)
            self._mark(marks.LineMark("end"))
            self._depth -= 1
        elif not directive or self._jsx:
            language, caption = fences.describe(info)
            self._to.code(fences.shown(token.content, language, self._generator), language, caption)
        elif self._depth < _MAX_DEPTH:
            self._depth += 1
            self._directive(directive[1], directive[2], token.content)
            self._depth -= 1

    def _directive(self, name: str, argument: str, content: str) -> None:
        """Read a MyST directive in a fence."""
        options = _OPTIONS.match(content)
        body = content[options.end() :] if options else content
        given = myst.options_of(options[0]) if options else {}
        if name in _PROGRAMS:
            self._to.code(body, argument, given.get("caption", ""))
        elif name == "eval-rst":
            from chapterverse.ingestion.readers.rst import read_text

            self._to.take(
                replace(part, level=min(part.level + self._level, 6)) if part.kind == "heading" else part
                for part in read_text(body, self._document)
            )
        elif name == "math":
            self._to.paragraph(formula(body, block=True))
        elif name in ("image", "figure"):
            self._to.image(given.get("alt", ""), argument, self._title(body) if name == "figure" else "")
        elif name in ("include", "literalinclude"):
            self._include(name, argument, given)
        elif name == "list-table":
            self._list_table(argument, given, body)
        else:
            self._container(name, argument, given, body)

    def _container(self, name: str, argument: str, given: dict[str, str], body: str) -> None:
        """Read a directive with Markdown in its body."""
        if name == "glossary" or myst.is_object(name):
            described = myst.glossary(body) if name == "glossary" else [([argument], body)]
            for terms, meaning in described:
                self._to.open_field(", ".join(self._title(term) if name == "glossary" else term for term in terms))
                self._walk(meaning)
                self._to.close_field()
        elif name in marks.ADMONITIONS or name == "admonition":
            named = name == "admonition"  # for other admonitions the argument is the first text
            look = given.get("class", "").split(" ")[0]
            self._mark(
                marks.LineMark("admonition", argument, "", look) if named else marks.opening(name, begins=argument)
            )
            self._walk(body)
            self._mark(marks.LineMark("end"))
        elif name not in _UNREAD:
            if name in _LABELLED and argument:
                self._to.paragraph(f"{self._title(argument)}:")
            self._walk(body)

    def _include(self, name: str, path: str, options: dict[str, str]) -> None:
        """Include another file of the source, as Markdown or as code."""
        if (included := self._inclusion.read(path)) is None:
            return
        lines = literal_lines(included.text, options) if name == "literalinclude" else None
        if name == "literalinclude":
            text = "\n".join(lines or [])
            self._to.code(
                dedent(text) if "dedent" in options else text, options.get("language", ""), options.get("caption", "")
            )
            return
        with self._inclusion.inside(included):
            self._walk("\n".join(include_lines(included.text.split("\n"), options) or []))

    def _list_table(self, caption: str, options: dict[str, str], body: str) -> None:
        """Read a table that is written as a nested list: items are rows, inner items are cells."""
        rows: list[list[str]] = []
        for token in _parser(self._jsx, "plain").parse(body, self._inner_env()):
            if token.type == "list_item_open" and token.level == 1:
                rows.append([])
            elif token.type == "list_item_open" and token.level == 3 and rows:
                rows[-1].append("")
            elif token.type == "inline" and rows and rows[-1]:
                rows[-1][-1] = f"{rows[-1][-1]} {self._sentence(token.children or [])}".strip()
        heads = options.get("header-rows", "0")
        self._to.table(rows, int(heads) if heads.isdecimal() and len(heads) < 4 else 0, self._title(caption))


def _heading_attributes(text: str, names: bool) -> re.Match[str] | None:
    """The `{#id .class}` at the end of a heading. `names`: plain names after a space are allowed, as in MkDocs."""
    found = _HEADING_ATTRIBUTES.search(text) if text.rstrip().endswith("}") else None
    if not found or _ID.search(found[1]) or _ATTRIBUTES.fullmatch(found[0].strip()):
        return found
    return found if names and found[0][0].isspace() and re.fullmatch(r"[\s\w-]+", found[1]) else None


def _only_images(children: Sequence[Token]) -> list[Token]:
    """The images of a paragraph that contains only images."""
    images = [child for child in children if child.type == "image"]
    rest = (child for child in children if child.type not in ("image", "link_open", "link_close", "softbreak"))
    blank = all(child.type == "text" and not _ATTRIBUTES.sub("", child.content).strip() for child in rest)
    return images if images and blank else []


def _alternative(image: Token) -> str:
    return "".join(child.content if child.content else " " for child in image.children or [])
