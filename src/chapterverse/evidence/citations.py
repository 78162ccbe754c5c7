"""Renders proven statements as Markdown with numbered sources. Citation markers are added only here."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from textwrap import indent
from typing import Any, Final
from urllib.parse import quote as url_quote

from chapterverse.editions import edition_label
from chapterverse.evidence.passages import IssuedPassage, IssuedUnit
from chapterverse.evidence.statement import Statement, UnitRef
from chapterverse.models import ChunkEvent, Highlight, Place, SelectedTextCitation, SourceCitation, StatementKind

MORE: Final = "…"  # on a line of its own: something is left out
SNIPPET: Final = 500  # characters of a passage shown with its citation (SPEC 2.1)

_STOP = re.compile(r"(?<![.!?…。！？:：])[.!?…。！？:：]++[\"'”’)»*_]*+\s*+$")
_CODE = re.compile(r"(?<!`)(`++).*?(?<!`)\1(?!`)|^ *+```.*?^ *+```", re.DOTALL | re.MULTILINE)
_BLOCK_END = re.compile(r"`{3,}+(?!.*`)|~~~|\|")  # a line that ends code or a table
_MARKER = re.compile(r"(?<!\w)\[(\d{1,3})\](?![(\w])")
_LINE_END = re.compile(r"\r\n|\r|\n")
_INNER_FENCE = re.compile(r"^ *(`{3,})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Proven:
    """A statement that may be shown, and the units that support it. An `absence` and a `frame` have none."""

    statement: Statement
    kind: StatementKind
    units: tuple[IssuedUnit, ...] = ()
    highlights: tuple[IssuedUnit, ...] = ()  # the units of an excerpt that answer; empty: all units
    replaced: bool = False  # a quote from the book instead of a statement that was not proven


@dataclass(slots=True)
class Renderer:
    """Renders an answer statement by statement. Rendered text is never changed."""

    passages: Sequence[IssuedPassage]
    sources: list[SourceCitation] = field(default_factory=list)
    spans: list[tuple[int, int, int]] = field(default_factory=list)  # passage, start and end of each source
    _last: Statement | None = None
    # For each list around this place: its depth, its last number as written, and that number as shown.
    _lists: list[tuple[int, int, int]] = field(default_factory=list)

    def write(self, proven: Proven) -> ChunkEvent:
        """Return the next piece of the answer, with the sources that are cited for the first time."""
        known = len(self.sources)
        units = proven.units if proven.statement.shape != "heading" else ()
        markers = list(dict.fromkeys(self._cite(span, proven) for span in _spans(units)))
        joint = self._joint(proven.statement)
        body = self._body(proven.statement, markers, new_table=joint != "\n")
        self._last = proven.statement
        lit = _places(body, proven.highlights, len(joint)) if proven.statement.shape == "excerpt" else []
        sources = self.sources[known:]
        return ChunkEvent(content=joint + body, kind=proven.kind, cites=markers, highlights=lit, sources=sources)

    def name_versions(self) -> ChunkEvent | None:
        """Return a last line that names the version of each source, if a book is cited in several versions."""
        cited: dict[tuple[str, str], list[int]] = {}
        for number, source in enumerate(self.sources, start=1):
            cited.setdefault((source.book, source.version), []).append(number)
        if len(cited) == len({book for book, _ in cited}):
            return None
        named = [
            f"{edition_label(*edition) or 'no version'} {''.join(f'[{number}]' for number in numbers)}"
            for edition, numbers in cited.items()
        ]
        numbers = [number for group in cited.values() for number in group]
        content = f"\n\nThe sources are of different versions: {', '.join(named)}."
        return ChunkEvent(content=content, kind="frame", cites=numbers)

    def _cite(self, span: tuple[int, int, int], proven: Proven) -> int:
        """Return the number of the source that contains a span of a passage; if there is none, add one."""
        passage, start, end = span
        for number, (other, left, right) in enumerate(self.spans, start=1):
            if other == passage and left <= start and end <= right:
                return number
        lit = [unit for unit in proven.highlights or proven.units if unit.ref.passage == passage]
        lit = sorted((unit for unit in lit if start <= unit.start and unit.end <= end), key=lambda unit: unit.start)
        marks = [Highlight(start=unit.start, end=unit.end) for unit in lit]
        self.spans.append(span)
        self.sources.append(_citation(self.passages[passage - 1], start, end, marks))
        return len(self.sources)

    def _joint(self, statement: Statement) -> str:
        """Return the separator between a statement and the one before it."""
        last = self._last
        if last is None:
            return ""
        if not statement.opens and last.shape == statement.shape:
            return " "
        same_table = statement.shape == last.shape == "row" and statement.head == last.head
        return "\n" if same_table or statement.shape == last.shape == "item" else "\n\n"

    def _body(self, statement: Statement, markers: Sequence[int], *, new_table: bool) -> str:
        shown = "".join(f"[{number}]" for number in markers)
        margin, mark = self._opening(statement)
        match statement.shape:
            case "heading":
                marks = "#" * statement.level if statement.level < 7 else ""
                return f"{marks} {statement.text}".strip()
            case "code":
                inner = max((len(run) for run in _INNER_FENCE.findall(statement.text)), default=2)
                fence = "`" * (inner + 1)
                body = f"{fence}{statement.head}\n{statement.text}\n{fence}" + (f"\n{shown}" if shown else "")
                return indent(body, margin)
            case "row":
                row = statement.row.rstrip()
                row = f"{row.removesuffix('|').rstrip()} {shown} |" if shown else row
                return indent(f"{statement.head}\n{row}" if statement.head and new_table else row, margin)
            case "item":
                return margin + mark + marked(statement.text, shown)
        return indent(marked(statement.text, shown), margin)

    def _opening(self, statement: Statement) -> tuple[str, str]:
        """Return the indentation of a statement and the mark of a list item. An item whose parent was withheld moves
        out, and items are renumbered, so that a withheld item leaves no gap."""
        if not statement.opens:
            return "", ""
        around = [level for level in self._lists if level[0] < statement.depth]
        margin = " " * sum(max(3, len(f"{shown}. ")) for *_, shown in around)  # what is in "10. " needs four
        if statement.shape == "heading":
            self._lists = []
        elif statement.shape == "item":
            numbered = statement.marker[:1].isdigit()
            _, before, shown = next((level for level in self._lists if level[0] == statement.depth), (0, -1, 0))
            if numbered:  # bullets between two steps do not restart their numbers
                written = int(statement.marker.rstrip("."))
                before, shown = written, shown + 1 if before < written else 1
            self._lists = [*around, (statement.depth, before, shown)]
            return margin, f"{shown}. " if numbered else "- "
        return margin, ""


def marked(text: str, markers: str) -> str:
    """Return a text with its markers before the full stop or, after code and tables, on a line of their own."""
    if not markers:
        return text
    last = text.rstrip().rsplit("\n", 1)[-1].lstrip()
    if _BLOCK_END.match(last):
        return f"{text}\n\n{markers}"
    if last == MORE:
        return f"{text} {markers}"
    stop = _STOP.search(text)
    at = stop.start() if stop else len(text)
    return f"{text[:at].rstrip()} {markers}{text[at:]}"


def markers_of(text: str, cites: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the start, end and number of each marker of a rendered statement, which cites these sources in this order.
    Nothing in brackets follows the markers, so that the book's own brackets come before them."""
    places: list[tuple[int, int, int]] = []
    place = len(text)
    for number in reversed(cites):
        marker = f"[{number}]"
        if (place := text.rfind(marker, 0, place)) < 0:
            break
        places.append((place, place + len(marker), number))
    return places[::-1]


def without_markers(text: str) -> str:
    """Remove what looks like a marker, and the white space before it, from an answer whose statements are not known.
    Brackets in code stay."""
    code = [match.span() for match in _CODE.finditer(text)]
    for found in reversed([*_MARKER.finditer(text)]):
        if not any(left <= found.start() < right for left, right in code):
            text = text[: found.start()].rstrip() + text[found.end() :]
    return text


def lines_of(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the first and the last line, counted from 1, of the characters `text[start:end]`."""
    ends = [match.end() for match in _LINE_END.finditer(text)]
    return 1 + sum(at <= start for at in ends), 1 + sum(at <= max(start, end - 1) for at in ends)


def _places(body: str, units: Iterable[IssuedUnit], offset: int) -> list[Highlight]:
    """Return the positions of units in an excerpt. The last one may have its markers before its full stop."""
    found: list[Highlight] = []
    place = 0
    for unit in units:
        start = body.find(unit.text, place)
        end = start + len(unit.text)
        if start < 0 and (start := body.find(_STOP.sub("", unit.text), place)) >= 0:
            end = len(body)
        if start >= 0:
            found.append(Highlight(start=start + offset, end=end + offset))
            place = end
    return found


def _spans(units: Iterable[IssuedUnit]) -> list[tuple[int, int, int]]:
    """Return the spans that units cover: consecutive units form one span."""
    spans: list[tuple[int, int, int]] = []
    last = UnitRef(0)
    for unit in sorted(units, key=lambda unit: unit.ref):
        follows = last.passage == unit.ref.passage and unit.ref.unit - last.unit <= 1
        start, end = spans.pop()[1:] if follows else (unit.start, unit.end)
        spans.append((unit.ref.passage, start, max(end, unit.end)))
        last = unit.ref
    return spans


def _citation(passage: IssuedPassage, start: int, end: int, highlights: list[Highlight]) -> SourceCitation:
    left, right = start - passage.offset, end - passage.offset
    quote, snippet = passage.text[left:right], _around(passage.text, left, right)
    if len(quote) > SNIPPET and highlights:  # for a long quote, show the units that answer
        snippet = _around(quote, highlights[0].start - start, highlights[-1].end - start)
    quoted: dict[str, Any] = {
        "chunk_text": snippet,
        "quote": quote,
        "quote_start": start,
        "quote_end": end,
        "highlights": highlights,
    }
    if (chunk := passage.chunk) is not None:
        same = {*Place.model_fields, "chunk_index", "breadcrumb", "module", "rank", "page_id"}
        place = chunk.model_dump(include=same)
        place["reader_url"] = f"/read/{url_quote(chunk.page_id, safe='')}?quote={start}-{end}"
        return SourceCitation(**place, relevance_score=chunk.relevance_score, **quoted)
    first, last = lines_of(passage.text, left, right)
    place = {"source_url": "selected_text", "page_title": "User Selection", "breadcrumb": "User Selection"}
    nothing = {"section_heading": "", "module": "", "chunk_index": 0, "rank": 1, "relevance_score": 1.0}
    lines = {"char_start": start, "char_end": end, "line_start": first, "line_end": last}
    return SelectedTextCitation(**place, **nothing, **lines, **quoted)


def _around(text: str, start: int, end: int) -> str:
    """Return at most `SNIPPET` characters with the evidence in the middle, cut at spaces if there are any."""
    if len(text) <= SNIPPET:
        return text
    spare = max(0, SNIPPET - (end - start))
    left = max(0, min(start - spare // 2, len(text) - SNIPPET))
    right = min(len(text), left + SNIPPET)
    if 0 < left < start and (blank := text.find(" ", left, start)) != -1:
        left = blank + 1
    if end < right < len(text) and (blank := text.rfind(" ", end, right)) != -1:
        right = blank
    return text[left:right]
