"""A page of the book as HTML, for readers without JavaScript and before the scripts run.

Makes the same elements as `web/render.js`; a browser test compares the two. Text and attributes are escaped in one
place, `Node.html`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import count, pairwise
from typing import Final
from urllib.parse import unquote

from chapterverse.api.pages import PageBlock, PageMark, RenderedPage
from chapterverse.book import CAPTION

Attributes = dict[str, str | None]
Leading = Callable[[str], Attributes | None]  # gives the attributes of a link to a target; None if it cannot be linked

_EMPTY: Final = {"img", "br", "input"}  # elements without an end tag
_ITEM: Final = re.compile(r"( *)(?:[-*+•] |(\d+)\. )")
_RULE: Final = re.compile(r"\|(?: *:?-+:? *\|)+")
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_TAGS: Final = {
    "emphasis": "em", "strong": "strong", "code": "code", "sub": "sub", "sup": "sup", "footnote": "small"
}  # fmt: skip
_TONES: Final = {
    "note": "note info abstract seealso example quote",
    "tip": "tip hint success question",
    "warning": "important warning caution attention deprecated",
    "danger": "danger error failure bug",
}


@dataclass(slots=True)
class Node:
    """An element. An attribute that is None is left out; an empty one is written without a value."""

    tag: str
    attributes: Attributes = field(default_factory=dict)
    children: list["Node | str"] = field(default_factory=list)

    def add(self, *children: "Node | str | None") -> "Node":
        """Append the children that are not None."""
        self.children += [child for child in children if child is not None]
        return self

    def html(self) -> str:
        """The element as HTML, with text and attributes escaped."""
        given = ((name, value) for name, value in self.attributes.items() if value is not None)
        attributes = "".join(f' {name}="{escape(value)}"' if value else f" {name}" for name, value in given)
        if self.tag in _EMPTY:
            return f"<{self.tag}{attributes}>"
        inner = "".join(child.html() if isinstance(child, Node) else escape(child) for child in self.children)
        return f"<{self.tag}{attributes}>{inner}</{self.tag}>"


def node(tag: str, *children: Node | str | None, **attributes: str | None) -> Node:
    """An element; `class_` is written `class`, `aria_label` is written `aria-label`."""
    named: Attributes = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    return Node(tag, named).add(*children)


def render(page: RenderedPage, leading: Leading, root: str) -> list[Node]:
    """The blocks of a page. `root` is put before the addresses of images, which are relative to the server's root."""
    return _Rendering(page, leading, root).finish()


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class _Span:
    """A mark, or inline code. `ticks`: how many characters at each end of code or a formula are not shown."""

    kind: str
    start: int
    end: int
    mark: PageMark | None = None
    ticks: int | None = None


@dataclass(slots=True)
class _List:
    node: Node
    indent: int
    item: Node


class _Rendering:
    def __init__(self, page: RenderedPage, leading: Leading, root: str) -> None:
        self._page, self._text, self._leading, self._root = page, page.text, leading, root
        self._headings = {section.start: section for section in page.sections}
        self._around: list[Node] = []  # the elements that the next block may be inside of, outermost first
        self._begun: list[Node] = []  # the elements that the current block opens
        self._lists: dict[int, _List] = {}  # the list of an item, by the item's identity
        self._next_mark = 0
        self._in_table = False
        self._figure_above: Node | None = None  # the figure whose caption the next block may be
        self._caption: Node | None = None  # of the table that follows
        self._notes: set[str] = set()
        self._kinds: dict[str, Callable[[PageBlock, int], Node | None]] = {
            "heading": self._heading,
            "code": self._code,
            "table": self._table,
            "list": lambda block, inside: self._list(list(self._lines(block.start, block.end)), inside),
            "quote": self._quote,
            "admonition": self._admonition,
            "field": self._field,
            "image": self._figure,
        }

    def finish(self) -> list[Node]:
        nodes: list[Node] = []
        for block in self._page.blocks:
            inside = min(block.inside, len(self._around))
            rendered = self._kinds.get(block.kind, self._prose)(block, inside)
            self._figure_above = rendered if block.kind == "image" else None
            if rendered is not None and inside:
                self._around[inside - 1].add(rendered)
            elif rendered is not None:
                nodes.append(rendered)
            self._around[inside:] = self._begun
            self._begun = []
        return nodes

    def _heading(self, block: PageBlock, _: int) -> Node:
        section = self._headings.get(block.start)
        anchor = f"book-{unquote(section.anchor)}" if section and section.anchor else None
        heading = node(f"h{section.level if section else 4}", id=anchor, tabindex="-1", dir="auto")
        lead = re.match(r"#+ ", self._text[block.start : block.end])
        return self._inline(heading, block.start + (lead.end() if lead else 0), block.end)

    def _code(self, block: PageBlock, _: int) -> Node:
        lines = list(self._lines(block.start, block.end))
        code = node("code")
        if len(lines) > 2:
            code.add(self._text[lines[1].start : lines[-2].end])
        label = f"Code, {block.info}" if block.info else "Code"
        label = f"{label}: {block.caption}" if block.caption else label
        head = node("div", class_="code-head")
        head.add(node("span", block.caption, class_="caption", dir="auto") if block.caption else None)
        head.add(node("span", block.info, class_="language") if block.info else None)
        pre = node("pre", code, dir="ltr", tabindex="0", role="group", aria_label=label)
        return node("div", head, pre, class_="code", data_language=block.info or None)

    def _table(self, block: PageBlock, _: int) -> Node:
        rows = [line for line in self._lines(block.start, block.end) if line.text.startswith("|")]
        ruled = len(rows) > 1 and _RULE.fullmatch(rows[1].text) is not None
        self._in_table = True
        named = ruled and re.sub(r"[|\s]", "", rows[0].text)
        head = node("thead", node("tr", *self._cells(rows[0], "th"))) if named else None
        body = node("tbody", *(node("tr", *self._cells(line, "td")) for line in rows[2 if ruled else 0 :]))
        self._in_table = False
        caption, self._caption = self._caption, None
        table = node("table", caption, head, body, dir="auto")
        return node("div", table, class_="table", tabindex="0", role="group", aria_label="Table")

    def _cells(self, line: _Line, tag: str) -> Iterator[Node]:
        bars = [line.start + bar.start() for bar in re.finditer(r"(?<!\\)\|", line.text)]
        for bar, after in pairwise(bars):
            raw = self._text[bar + 1 : after]
            start = bar + 1 + len(raw) - len(raw.lstrip())
            cell = node(tag, scope="col") if tag == "th" else node(tag)
            yield self._inline(cell, start, start + len(raw.strip()), bar + 1)

    def _quote(self, block: PageBlock, _: int) -> Node:
        quote = node("blockquote", dir="auto")
        paragraph: Node | None = None
        for line in self._lines(block.start, block.end):
            found = re.match(r"> ?", line.text)
            lead = found.end() if found else 0
            if len(line.text) == lead:
                paragraph = None
                continue
            if paragraph is None:
                paragraph = node("p")
                quote.add(paragraph)
            else:
                paragraph.add(node("br"))
            self._inline(paragraph, line.start + lead, line.end)
        self._begun = [quote]
        return quote

    def _list(self, lines: Sequence[_Line], inside: int = -1) -> Node | None:
        """Return a new list, or None if the items were added to the list before."""
        open_: list[_List] = []
        top: Node | None = None
        before = self._lists.get(id(self._around[inside])) if 0 <= inside < len(self._around) else None
        first = _ITEM.match(lines[0].text) if lines else None
        if before and _goes_on(before, first[2] if first else None):
            open_.append(_List(before.node, 0, before.item))
        for line in lines:
            if not line.text.strip():
                continue
            found = _ITEM.match(line.text)
            if found is None and open_:
                lead = len(line.text) - len(line.text.lstrip())
                paragraph = node("p")
                open_[-1].item.add(paragraph)
                self._inline(paragraph, line.start + lead, line.end)
                continue
            top = self._item(line, found, open_) or top
        self._begun = [level.item for level in open_]
        return top

    def _item(self, line: _Line, found: re.Match[str] | None, open_: list[_List]) -> Node | None:
        """Add an item to its list. Returns the list if it is a new one at the top level."""
        lead = found.end() if found else len(line.text) - len(line.text.lstrip())
        indent, number = (len(found[1]), found[2]) if found else (0, None)
        top = None
        while len(open_) > 1 and open_[-1].indent > indent:
            open_.pop()
        if not open_ or open_[-1].indent < indent:
            start = number if number and number != "1" else None
            new_list = node("ol" if number else "ul", start=start, dir="auto")
            if open_:
                open_[-1].item.add(new_list)
            else:
                top = new_list
            open_.append(_List(new_list, indent, new_list))
        innermost = open_[-1]
        item = node("li", value=number if innermost.node.tag == "ol" else None)
        innermost.node.add(item)
        innermost.item = item
        self._lists[id(item)] = innermost
        self._inline(item, line.start + lead, line.end)
        return top

    def _admonition(self, block: PageBlock, _: int) -> Node:
        kind = block.info.split(" ")[0]
        tone = next((tone for tone, kinds in _TONES.items() if kind in kinds.split()), "note")
        aside = node("div", class_=f"aside tone-{tone}", role="note", dir="auto")
        label = re.match(rf"({re.escape(block.caption)}):?(?:\s|$)", self._text[block.start : block.end])
        if label:
            aside.add(self._inline(node("p", class_="label"), block.start, block.start + label.end(1)))
        self._flow(aside, block.start + (label.end() if label else 0), block.end)
        self._begun = [aside]
        return aside

    def _field(self, block: PageBlock, _: int) -> Node:
        name, *rest = self._lines(block.start, block.end)
        term = self._inline(node("dt", dir="auto"), name.start, name.end)
        described = node("dd", dir="auto")
        if rest:
            self._flow(described, rest[0].start, block.end)
        self._begun = [described]
        return node("dl", term, described, class_="definition")

    def _flow(self, parent: Node, start: int, end: int) -> None:
        """Add the paragraphs and lists inside a block."""
        lines: list[_Line] = []

        def close() -> None:
            if lines:
                is_list = _ITEM.match(lines[0].text)
                parent.add(self._list(lines) if is_list else self._paragraph(lines[0].start, lines[-1].end))
            lines.clear()

        for line in self._lines(start, end):
            in_list = lines and _ITEM.match(lines[0].text) and (_ITEM.match(line.text) or line.text.startswith(" "))
            if not line.text.strip() or not in_list:
                close()
            if line.text.strip():
                lines.append(line)
        close()

    def _figure(self, block: PageBlock, _: int) -> Node:
        named = re.fullmatch(r"\[Image: (.*)\]", self._text[block.start : block.end], re.DOTALL)
        shown = self._picture(block.source, named[1] if named else "")
        attributes = None if block.source else self._leading(block.info)
        return node("figure", Node("a", attributes).add(shown) if attributes else shown)

    def _picture(self, source: str, title: str) -> Node:
        if not source:
            return node("span", title or "image", class_="picture", dir="auto")
        return node("img", src=self._root + source, alt=title, loading="lazy")

    def _prose(self, block: PageBlock, _: int) -> Node | None:
        """Return a paragraph. The caption of the image above or of the table below is added there; return None."""
        if block.info != CAPTION:
            return self._paragraph(block.start, block.end)
        caption = node("figcaption" if self._figure_above else "caption", dir="auto")
        self._inline(caption, block.start, block.end)
        if self._figure_above:
            self._figure_above.add(caption)
        else:
            self._caption = caption
        return None

    def _paragraph(self, start: int, end: int) -> Node:
        return self._inline(node("p", dir="auto"), start, end)

    def _lines(self, start: int, end: int) -> Iterator[_Line]:
        while start <= end:
            found = self._text.find("\n", start, end)
            stop = end if found < 0 else found
            yield _Line(start, stop, self._text[start:stop])
            start = stop + 1

    def _inline(self, parent: Node, start: int, end: int, begin: int | None = None) -> Node:
        """Add a range of the text with its marks and inline code. Blocks and marks must come in order."""
        marks = self._page.marks
        while self._next_mark < len(marks) and marks[self._next_mark].start < (start if begin is None else begin):
            self._next_mark += 1
        spans: list[_Span] = []
        for index in count(self._next_mark):
            if index == len(marks) or marks[index].start > end:
                break
            mark = marks[index]
            if mark.end <= end:
                signs = (2 if self._text.startswith("$$", mark.start) else 1) if mark.kind == "math" else None
                spans.append(_Span(mark.kind, max(mark.start, start), max(mark.end, start), mark, signs))
        text = self._text[start:end]
        spans += (_Span("code", start + m.start(), start + m.end(), ticks=len(m[1])) for m in _CODE.finditer(text))
        spans.sort(key=lambda span: (span.start, -span.end))
        self._nest(parent, start, end, spans)
        return parent

    def _nest(self, parent: Node, start: int, end: int, spans: Sequence[_Span]) -> None:
        done, index = start, 0
        while index < len(spans):
            span = spans[index]
            after = index + 1
            while after < len(spans) and spans[after].start < span.end:
                after += 1
            if span.start >= done and span.end <= end:
                self._run(parent, done, span.start)
                self._span(parent, span, [inner for inner in spans[index + 1 : after] if inner.end <= span.end])
                done = span.end
            index = after
        self._run(parent, done, end)

    def _span(self, parent: Node, span: _Span, inner: Iterable[_Span]) -> None:
        if span.kind == "image" and span.mark:
            parent.add(self._picture(span.mark.source, span.mark.title))
        elif span.kind == "footnote" and span.mark and not self._says_note(span):
            label = span.mark.target
            first = f"Footnote {label}" if label not in self._notes else None
            self._notes.add(label)
            parent.add(node("sup", label, class_="footnote", aria_label=first))
        else:
            element = self._element(span)
            parent.add(element)
            quiet = span.ticks or 0
            power = span.kind == "sup" and self._text.startswith("^", span.start)  # the caret is not shown
            within = [nested for nested in inner if span.ticks is None or nested.ticks is None]
            self._nest(element, span.start + (1 if power else quiet), span.end - quiet, within)

    def _says_note(self, span: _Span) -> bool:
        """Whether a footnote's text stands where it is cited, not only its label."""
        return span.mark is not None and self._text[span.start : span.end] not in ("", f"[{span.mark.target}]")

    def _element(self, span: _Span) -> Node:
        if span.kind == "math":
            return node("span", class_="math", dir="ltr")
        attributes = self._leading(span.mark.target) if span.kind == "link" and span.mark else None
        return Node("a", attributes) if attributes else node(_TAGS.get(span.kind, "span"))

    def _run(self, parent: Node, start: int, end: int) -> None:
        """Add text. In a table the backslash before a bar is not shown."""
        if start < end:
            text = self._text[start:end]
            parent.add(text.replace("\\|", "|") if self._in_table else text)


def _goes_on(before: _List, number: str | None) -> bool:
    """Whether an item continues the list before it: its number is higher, or both have no numbers."""
    if before.node.tag == "ul":
        return number is None
    last = before.item.attributes.get("value")
    return number is not None and last is not None and int(number) > int(last)
