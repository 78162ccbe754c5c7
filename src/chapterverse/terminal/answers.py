"""Prints answers, sources, passages, conversations and sessions.

Answers, sources, passages and conversations are data and go to stdout; the rest goes to stderr.
"""

import json
import re
from collections.abc import Container, Iterator, Sequence
from datetime import datetime
from textwrap import TextWrapper
from types import TracebackType
from typing import Final, Self

import click
from rich.cells import cell_len
from rich.text import Text

from chapterverse.conversations.turns import SessionSummary
from chapterverse.editions import edition_label
from chapterverse.language import stems
from chapterverse.models import (
    ChunkEvent,
    ChunkResult,
    ConversationThread,
    DoneEvent,
    Event,
    RetrievedEvent,
    SearchResult,
    SelectedTextCitation,
    SourceCitation,
    SourcesEvent,
)
from chapterverse.terminal import err, one_line, out, printable, show_note, show_warning

QUOTE: Final = 240  # characters of a quote under an answer, or of a passage; /sources shows all of a quote
INDENT: Final = "    "
WIDEST: Final = 100  # columns; longer lines are hard to read


class AnswerView:
    """Prints the events of an answer. A context manager, so that an interrupted answer ends its line."""

    def __init__(self, *, with_session: bool) -> None:
        self._with_session = with_session
        self._midline = False
        self._in_own_words: set[int] = set()  # numbers of the sources that were cited by sentences that are not quotes
        self._fit = _WordWrap(_width()) if out.is_terminal else printable

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_line()

    def __call__(self, event: Event) -> None:
        """Print an event."""
        match event:
            case RetrievedEvent():
                pages = dict.fromkeys(passage.page_title for passage in event.passages)
                if pages:
                    show_note(f"reading: {' · '.join(pages)}")
            case ChunkEvent():
                for text, lit in _highlighted_parts(event):
                    fitted = self._fit(text)
                    # Not with rich, which changes tabs.
                    click.echo(click.style(fitted, bold=True) if lit and out.is_terminal else fitted, nl=False)
                self._midline = True
                if event.kind != "quoted":
                    self._in_own_words.update(event.cites)
            case SourcesEvent():
                self._end_line()
                if event.sources:
                    out.print()
                    show_sources(event.sources, quoted=self._in_own_words)
            case DoneEvent():
                self._conclude(event)

    def _conclude(self, done: DoneEvent) -> None:
        if done.disclaimer:
            out.print(f"\nNote: {done.disclaimer}")
        if done.advice:
            show_note(f"\n{_fitted(done.advice)}")
        metadata = done.metadata
        notes = [
            "refused" if done.status == "refused" else f"confidence {done.confidence_level} ({done.confidence:.2f})"
        ]
        if done.mode == "general":
            notes.append(f"{metadata.chunks_retrieved} passages read")
        if metadata.sentences_withheld:
            notes.append(f"{metadata.sentences_withheld} unsupported sentences withheld")
        notes.append(f"{metadata.query_time_ms / 1000:.1f} s")
        show_note("\n" + " · ".join(notes))
        if self._with_session:
            show_note(f"session {done.session_id}" + (f" · turn {done.turn_id}" if done.turn_id else ""))
        if done.status == "truncated":
            show_warning("a limit ended the answer early; what is shown was verified.")

    def _end_line(self) -> None:
        if self._midline:
            click.echo()
            self._midline = False


def _highlighted_parts(event: ChunkEvent) -> Iterator[tuple[str, bool]]:
    """Yield the parts of an event's text; each has a flag that says whether it is highlighted."""
    place = 0
    for mark in event.highlights:
        yield event.content[place : mark.start], False
        yield event.content[mark.start : mark.end], True
        place = mark.end
    yield event.content[place:], False


class _WordWrap:
    """Breaks lines of streamed text between words. A terminal would also break them inside words."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._column = 0
        self._blank = ""  # before the next word; dropped at a line break

    def __call__(self, text: str) -> str:
        """Return the next piece of the text with line breaks."""
        fitted: list[str] = []
        for part in re.findall(r"\n|[^\S\n]+|\S+", printable(text)):
            if part == "\n":
                self._column, self._blank = 0, ""
                fitted.append(part)
            elif part.isspace():
                self._blank = part
            else:
                spaced = self._blank + part
                broken = self._column and self._column + cell_len(spaced) > self._width
                fitted.append(f"\n{part}" if broken else spaced)
                self._column = cell_len(part) if broken else self._column + cell_len(spaced)
                self._blank = ""
        return "".join(fitted)


def show_sources(sources: Sequence[SourceCitation], *, quoted: Container[int] | None = None) -> None:
    """Print each source with its number and its quote in full. With `quoted`, print only the beginnings of the quotes
    of these sources."""
    for number, source in enumerate(sources, start=1):
        out.print(Text.assemble((f"[{number}] ", "bold"), printable(_place(source))))
        if quoted is None:
            out.print(_fitted(source.quote, INDENT), style="dim")
        elif number in quoted:
            out.print(_fitted(f"“{one_line(source.gist, QUOTE)}”", INDENT), style="dim")


def show_passages(found: SearchResult) -> None:
    """Print the passages of a search. Only `--json` has the similarities: the order also depends on matching words, so
    it would look wrong next to them."""
    for passage in found.results:
        edition = edition_label(passage.book, passage.version)
        heading = f"{passage.rank}. {printable(' › '.join(filter(None, (edition, passage.breadcrumb))))}"
        flags = f"  flagged: {', '.join(passage.flags)}" if passage.flags else ""
        out.print(Text.assemble((heading, "bold"), (flags, "yellow")))
        out.print(Text(f"   {printable(passage.source_url)}", style="blue"))
        out.print(Text(f"   {_snippet(passage, found.query)}\n"))
    if not found.results:
        err.print("No passage of the book fits.")
        return
    count = f"{found.total_results} passages" if found.total_results > 1 else "1 passage"
    err.print(f"{count} in {found.latency_ms:.0f} ms, best first", style="dim")


def _snippet(passage: ChunkResult, query: str) -> str:
    """Return the passage from the unit that shares most words with the query, or the first of several. Headings are
    left out: the breadcrumb has them."""
    asked, whole = stems(query), passage.chunk_text
    units = [(unit.start - passage.char_start, unit.end - passage.char_start) for unit in passage.units]
    start, _ = max(units, key=lambda unit: len(asked & stems(whole[unit[0] : unit[1]])), default=(0, 0))
    before = "… " if units and start > units[0][0] else ""
    return one_line(before + whole[start:], QUOTE)


def show_thread(thread: ConversationThread, *, with_searches: bool = False) -> None:
    """Print the messages of a conversation, oldest first, and optionally the searches of each answer."""
    for message in thread.messages:
        if message.role == "user":
            out.print(_fitted(f"> {message.content}"), style="bold")
            continue
        for search in message.searches if with_searches else ():
            similarity = "" if search.mean_similarity is None else f", mean similarity {search.mean_similarity:.2f}"
            narrowed = f", within {json.dumps(search.filters, ensure_ascii=False)}" if search.filters else ""
            found = f"{search.count} passage{'s' * (search.count != 1)}{similarity}{narrowed}"
            out.print(_fitted(f"searched at {moment(search.searched_at)} for “{search.query}”: {found}"), style="dim")
        out.print(f"{_fitted(message.content)}\n")


def show_sessions(sessions: Sequence[SessionSummary]) -> None:
    """Print the sessions."""
    if not sessions:
        show_note("No conversation is stored yet. Start one with: chapterverse chat")
        return
    for session in sessions:
        about = " ".join(printable(session.topic_summary or session.first_question or "").split())
        turns = f"{session.turn_count} turn{'s' * (session.turn_count != 1)}"
        # A line that is too long is cut only on a terminal.
        out.print(Text(about, style="bold"), soft_wrap=not out.is_terminal, no_wrap=True, overflow="ellipsis")
        out.print(f"{INDENT}{moment(session.updated_at)} · {turns} · {session.thread_id}")
    show_note("\nRead one with: chapterverse sessions show ID   Continue with: chapterverse chat --session ID")


def moment(time: datetime) -> str:
    """Format a time as local time, to the minute."""
    return f"{time.astimezone():%Y-%m-%d %H:%M}"


def _place(source: SourceCitation) -> str:
    if isinstance(source, SelectedTextCitation):
        lines = f"line {source.line_start}"
        if source.line_end != source.line_start:
            lines = f"lines {source.line_start}–{source.line_end}"
        return f"{source.page_title} › {lines} — characters {source.char_start}–{source.char_end}"
    return f"{source.place} — {source.source_url}"


def _fitted(text: str, indent: str = "") -> str:
    """Indent the lines of a text and, on a terminal, wrap them."""
    lines = printable(text).splitlines()
    if not out.is_terminal:
        return "\n".join(indent + line for line in lines)
    wrap = TextWrapper(
        width=_width(),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return "\n".join(wrap.fill(line) for line in lines)


def _width() -> int:
    return min(out.width, WIDEST)
