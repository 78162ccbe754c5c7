"""Markdown and its dialects: CommonMark, GitHub, Docusaurus MDX, MkDocs, Hugo, MyST.

Owns the walk from Markdown's tokens to the parts of a page. Never follows a link, includes a file or runs anything.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

from chapterverse.ingestion.document import Document, Draft, NothingToRead, Part, Unreadable
from chapterverse.ingestion.readers import dialects, frontmatter, marks, mdx
from chapterverse.ingestion.readers.cleaning import clean_inline, decode
from chapterverse.ingestion.readers.manuscript import Manuscript
from chapterverse.ingestion.readers.rawhtml import RawHtml

_MAX_INLINE = 10_000  # characters; a longer paragraph is taken as plain text, since inline rules are not linear
_MAX_UNCLOSED = 100  # brackets; each is searched to the paragraph's end
_MAX_DEPTH = 8  # of directives inside directives

_HEADING_ID = re.compile(r"\s*\{:?\s*#([^\s{}]+)[^{}]*\}\s*$")
_ROLE = re.compile(r"\{[\w:.+-]+\}$")
_ROLE_TARGET = re.compile(r"\s*<[^<>]*>$")
_ALERT = re.compile(r"\[!(\w+)\][+-]?\s*")
_DIRECTIVE = re.compile(r"\{([\w:.-]+)\}\s*(.*)")
_OPTIONS = re.compile(r"---\n[\s\S]*?\n---\n|(?:[ \t]*:[\w-]+:.*\n?)+")
_PROGRAMS = {"code-block", "code", "code-cell", "sourcecode", "testcode", "testoutput", "doctest", "prompt", "mermaid"}
_UNREAD = {"literalinclude", "toctree", "contents", "include", "raw", "button-ref", "button-link", "bibliography"}
_LABELLED = {"dropdown", "tab-item", "card", "grid-item-card", "tab"}
_STRUCTURE: dict[str, Callable[[Manuscript], None]] = {
    "bullet_list_open": Manuscript.open_list,
    "dl_open": Manuscript.open_list,
    "list_item_open": Manuscript.item,
    "bullet_list_close": Manuscript.close_list,
    "ordered_list_close": Manuscript.close_list,
    "dl_close": Manuscript.close_list,
    "table_open": Manuscript.open_table,
    "tr_open": Manuscript.row,
    "td_open": Manuscript.cell,
    "th_open": Manuscript.cell,
    "table_close": Manuscript.close_table,
}


def read(document: Document) -> list[Draft]:
    """The one page of a Markdown or MDX file."""
    matter, body = frontmatter.split(decode(document.data))
    if matter.draft:
        raise NothingToRead("marked as a draft")
    try:
        parts = _Reading(jsx=document.format == "mdx", sphinx=document.anchors == "sphinx").read(body)
    except RecursionError as error:
        raise Unreadable("nested too deeply") from error
    return [Draft(matter.title, parts, number=matter.number, slug=matter.slug)]


def _mark_rule(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    start = state.bMarks[line] + state.tShift[line]
    if not state.src.startswith(marks.SENTINEL, start):
        return False
    if not silent:
        token = state.push("mark", "", 0)
        token.content = state.src[start : state.eMarks[line]]
        state.line = line + 1
    return True


def _inline_rule(state: StateCore) -> None:
    """Markdown-it's own, but for paragraphs that cannot be prose."""
    for token in state.tokens:
        if token.type == "inline":
            token.children = []
            unclosed = token.content.count("[") - token.content.count("]")
            if len(token.content) <= _MAX_INLINE and unclosed <= _MAX_UNCLOSED:
                state.md.inline.parse(token.content, state.md, state.env, token.children)
            else:
                token.children.append(Token("text", "", 0, content=token.content))


@cache
def _parser(jsx: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": 30}).enable(["table", "strikethrough"])
    parser.use(deflist_plugin).use(footnote_plugin, inline=False).use(dollarmath_plugin, allow_digits=False)
    parser.block.ruler.before("code", "mark", _mark_rule, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    parser.core.ruler.at("inline", _inline_rule)
    if jsx:  # what is indented inside a component is not a program
        parser.disable("code")
    return parser


class _Reading:
    """One page on its way from tokens to parts."""

    def __init__(self, jsx: bool, sphinx: bool) -> None:
        self._jsx = jsx
        self._sphinx = sphinx
        self._to = Manuscript()
        self._html = RawHtml(self._to)
        self._open: list[str] = []  # kinds of the marks that have not ended
        self._alerts: list[bool] = []  # for each open quote whether it is an alert
        self._depth = 0

    def read(self, text: str) -> tuple[Part, ...]:
        self._walk(text)
        return self._to.finish()

    def _walk(self, text: str) -> None:
        text = marks.unmarked(text)
        if self._jsx:
            text = mdx.strip(text)
        tokens = _parser(self._jsx).parse(dialects.rewrite(text), {})
        for place, token in enumerate(tokens):
            if token.type == "html_block":
                self._html.block(token.content)
            elif not self._html.hiding:
                self._token(token, tokens, place)

    def _token(self, token: Token, tokens: Sequence[Token], place: int) -> None:
        match token.type:
            case "inline":
                self._inline(token, tokens[place - 1])
            case "fence":
                self._fence(token)
            case "code_block":
                self._to.code(token.content)
            case "math_block" | "math_block_label":
                self._to.paragraph(f"$${token.content}$$")
            case "ordered_list_open":
                self._to.open_list(ordered=True, start=int(token.attrGet("start") or 1))
            case "blockquote_open" | "blockquote_close":
                self._quote(token, tokens[place + 2 : place + 3])
            case "mark":
                self._mark(marks.parse(token.content))
            case kind if kind in _STRUCTURE:
                _STRUCTURE[kind](self._to)

    def _inline(self, token: Token, before: Token) -> None:
        children = token.children or []
        if before.type == "heading_open":
            self._heading(children, before)
        elif before.type == "dt_open":
            self._to.item(self._sentence(children))
        else:
            text = self._sentence(children)
            if self._alerts and self._alerts[-1]:
                text = _ALERT.sub("", text, count=1) if text.startswith("[!") else text
            self._to.paragraph(text)

    def _heading(self, children: Sequence[Token], before: Token) -> None:
        text = self._sentence(children, plain=True)
        anchor = ""
        if explicit := _HEADING_ID.search(text):
            text, anchor = text[: explicit.start()], explicit[1]
        elif self._sphinx and any(child.type == "html_inline" for child in children):
            from docutils.nodes import make_id

            anchor = make_id("".join(child.content for child in children))  # Sphinx counts the tags in
        if before.level == 0:
            self._to.close_all()
            self._open.clear()
        self._to.heading(text, int(before.tag[1]), anchor)

    def _sentence(self, children: Sequence[Token], plain: bool = False) -> str:
        """The text of inline tokens; code keeps its backticks unless `plain`."""
        said: list[str] = []
        for child in children:
            if child.type == "html_inline":
                said.append(self._html.inline(child.content))
            elif self._html.hiding:
                continue
            elif child.type == "code_inline":
                self._say_code(child.content, said, plain)
            elif child.type == "image":
                said.append(self._sentence(child.children or [], plain))
            elif child.type in ("softbreak", "hardbreak"):
                said.append(" ")
            elif child.type.startswith("math_inline"):
                said.append(f"${child.content}$")
            elif child.type != "footnote_ref":
                said.append(child.content)
        self._html.end_sentence()
        return "".join(said)

    def _say_code(self, code: str, said: list[str], plain: bool) -> None:
        if said and not self._jsx and (role := _ROLE.search(said[-1])):  # MyST: {ref}`text <target>`
            said[-1] = said[-1][: role.start()]
            said.append(_ROLE_TARGET.sub("", code).lstrip("~"))
        elif plain:
            said.append(code)
        else:
            said.append(f"`` {code} ``" if "`" in code else f"`{code}`")

    def _quote(self, token: Token, first: Sequence[Token]) -> None:
        if token.nesting > 0:
            alert = _ALERT.match(first[0].content) if first and first[0].type == "inline" else None
            self._alerts.append(bool(alert))
            if alert:
                self._to.open_admonition(marks.ADMONITIONS.get(alert[1].lower(), alert[1].capitalize()))
            else:
                self._to.open_quote()
        elif self._alerts and self._alerts.pop():
            self._to.close_admonition()
        else:
            self._to.close_quote()

    def _mark(self, mark: marks.Mark) -> None:
        if mark.kind == "end":
            if self._open and self._open.pop() == "admonition":
                self._to.close_admonition()
            return
        if mark.kind == "admonition":
            self._to.open_admonition(mark.label)
            if mark.title.casefold() != mark.label.casefold():
                self._to.paragraph(_unformatted(mark.title))
        elif mark.label:
            self._to.paragraph(f"{_unformatted(mark.label)}:")
        if mark.kind != "label":
            self._open.append(mark.kind)

    def _fence(self, token: Token) -> None:
        info = token.info.strip()
        directive = _DIRECTIVE.fullmatch(info)
        if not directive or self._jsx:
            language = re.split(r"[\s,{]", info, maxsplit=1)[0].lstrip(".")
            self._to.code(token.content, language)
        elif self._depth < _MAX_DEPTH:
            self._depth += 1
            self._directive(directive[1], directive[2], token.content)
            self._depth -= 1

    def _directive(self, name: str, argument: str, content: str) -> None:
        """A MyST directive written as a fence."""
        options = _OPTIONS.match(content)
        body = content[options.end() :] if options else content
        if name in _PROGRAMS:
            self._to.code(body, argument)
        elif name == "eval-rst":
            from chapterverse.ingestion.readers.rst import read_text

            self._to.take(read_text(body))
        elif name == "math":
            self._to.paragraph(f"$${body}$$")
        elif name == "image":
            alt = re.search(r":alt:(.*)", content)
            self._to.paragraph(alt[1] if alt else "")
        elif name in marks.ADMONITIONS or name == "admonition":
            mark = marks.opening(name, argument) if name != "admonition" else marks.Mark("admonition", argument)
            self._mark(mark)
            self._walk(body)
            self._mark(marks.Mark("end"))
        elif name not in _UNREAD:
            if name in _LABELLED and argument:
                self._to.paragraph(f"{_unformatted(argument)}:")
            self._walk(body)


def _unformatted(title: str) -> str:
    return clean_inline(re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", "", title))
