"""The command `chat`: a conversation on a terminal or from a pipe. Questions are answered as by `ask`."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import CancelledError
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args
from uuid import uuid4

import click

from chapterverse.cli.asking import answered, file_named, read_selection, selection_fields, start_conversations
from chapterverse.cli.background import Background
from chapterverse.cli.command import hint_for, reported, search_fields, search_options
from chapterverse.errors import ChapterverseError, ConfigurationError

if TYPE_CHECKING:
    from chapterverse.models import ChatResponse, ConversationThread, SourceCitation
    from chapterverse.services import Services

_HELP = """\
/sources      the sources of the last answer, with their quotes in full
/history      what was said in this session
/searches     the same with the searches
/up, /down    rate the last answer; a reason (wrong, incomplete, …) and a comment may follow
/select FILE  ask only about the text of FILE; /select returns to the book
/new          start a new session
/quit         quit, like Ctrl-D; Ctrl-C cancels the current answer"""


@click.command()
@search_options
@click.option("--session", metavar="ID", help="Continue the conversation with this id.")
@click.option("--json", "as_json", is_flag=True, help="Print each answer as one line of JSON, a ChatResponse.")
@reported
def chat(session: str | None, as_json: bool, **options: Any) -> int:
    """Talk with the book. Follow-up questions such as "and its limits?" are understood.

    Sources follow each answer. /help lists the commands of the prompt. Questions may also come from a pipe, one on each
    line; then the exit code is that of the last error, if there was one.

    \b
      chapterverse chat
      chapterverse chat --session 0b9f4d3e-6a53-4d0c-9d53-2f1a7f1f3a10
      printf 'What is ROS 2?\\nWho maintains it?\\n' | chapterverse chat --json
    """
    from chapterverse.fields import read_request
    from chapterverse.models import ChatRequest
    from chapterverse.settings import Settings

    fields = search_fields(**options)
    read_request(
        ChatRequest, query="?", session_id=session, **fields
    )  # reports invalid options before the first prompt
    settings = Settings.load()

    @contextlib.asynccontextmanager
    async def opening() -> "AsyncIterator[Services]":
        from chapterverse.wiring import open_services

        async with open_services(settings) as services:
            await _warm_up(services)
            yield services

    with Background(opening) as background:
        return Chat(background, fields, session, as_json=as_json).run()


class Chat:
    """A conversation at the prompt."""

    def __init__(self, background: Background, fields: dict[str, Any], session: str | None, *, as_json: bool) -> None:
        self._background = background
        self._fields = fields
        self._session = session or str(uuid4())
        self._resumes = session is not None
        self._stored = session  # the last session with a turn that was stored
        self._as_json = as_json
        self._selection: tuple[str, str] | None = None  # name and text of a file
        self._sources: list[SourceCitation] | None = None  # of the last answer
        self._turn: str | None = None  # id of the last stored answer
        self._exit_code = 0

    def run(self) -> int:
        """Answer each line until the user quits."""
        from chapterverse.terminal import show_error, show_note

        if sys.stdin.isatty() and sys.stdout.isatty():
            with contextlib.suppress(ImportError):
                import_module("readline")  # makes the prompt editable
        show_note(f"session {self._session} · /help · Ctrl-D quits")
        while (line := self._read()) is not None:
            try:
                if line.startswith("/"):
                    self._run_command(line)
                elif line.strip():
                    self._ask(line)
            except _Quit:
                break
            except CancelledError:
                show_note("Cancelled.")
            except KeyboardInterrupt:  # Ctrl-C was pressed again, right after the answer ended
                if not sys.stdin.isatty():
                    raise
            except ConfigurationError:  # no question can be answered
                raise
            except ChapterverseError as failure:
                show_error(failure.message, hint_for(failure))
                self._exit_code = failure.exit_code
        if self._stored:
            show_note(f"continue with: chapterverse chat --session {self._stored}")
        return 0 if sys.stdin.isatty() else self._exit_code

    def _read(self) -> str | None:
        """The next line, or None when there is none."""
        from chapterverse.terminal import err, show_note

        prompt = f"{self._selection[0]}> " if self._selection else "> "
        while True:
            try:
                if not sys.stdin.isatty():
                    return input()
                if sys.stdout.isatty():
                    err.print()
                    return input(prompt)
                err.print(f"\n{prompt}", end="")
                return input()
            except EOFError:
                if sys.stdin.isatty():
                    err.print()
                return None
            except KeyboardInterrupt:
                if not sys.stdin.isatty():
                    raise
                show_note("\nCtrl-D or /quit quits; Ctrl-C only cancels an answer.")

    def _run_command(self, line: str) -> None:
        from chapterverse.terminal import err, show_note

        match line.split(maxsplit=1):
            case ["/quit" | "/exit"]:
                raise _Quit
            case ["/help"]:
                err.print(_HELP)
            case ["/sources"]:
                self._show_sources()
            case ["/history" | "/searches" as word]:
                self._show_history(with_searches=word == "/searches")
            case ["/new"]:
                self._session, self._resumes = str(uuid4()), False
                self._selection = self._sources = self._turn = None
                show_note(f"session {self._session}")
            case ["/up" | "/down" as word, *words]:
                self._rate(word[1:], *words)
            case ["/select"]:
                self._selection = None
                show_note("Questions are about the book.")
            case ["/select", name]:
                file = file_named(name.strip()).absolute()  # so that "-" means a file, not stdin
                self._selection = (file.name, asyncio.run(read_selection(str(file))))
                show_note(f"Questions are only about {file.name}; /select returns to the book.")
            case [word, *_]:
                show_note(f"There is no command {word}; /help lists them.")
                show_note("A question that begins with / needs a space before it.")

    def _ask(self, question: str) -> None:
        from chapterverse.fields import read_request
        from chapterverse.models import ChatRequest
        from chapterverse.terminal import show_note
        from chapterverse.terminal.answers import AnswerView

        selected = self._selection[1] if self._selection else None
        request = read_request(
            ChatRequest, query=question, session_id=self._session, **selection_fields(selected), **self._fields
        )
        if not self._background.ready:
            show_note("opening the book …")
        resumes, self._resumes = self._resumes, False

        async def answer(services: "Services") -> "ChatResponse":
            if self._as_json:
                return await answered(request, services, lambda event: None, resumes=resumes)
            with AnswerView(with_session=False) as view:
                return await answered(request, services, view, resumes=resumes)

        response = self._background.run(answer)
        self._sources, self._turn = list(response.sources), response.turn_id
        self._stored = self._session if response.turn_id else self._stored
        if self._as_json:
            click.echo(response.model_dump_json())
        elif not sys.stdin.isatty():
            click.echo()
        if self._selection and response.mode == "general":
            self._selection = None
            show_note("The whole book was searched; questions are about the book again.")

    def _rate(self, rating: str, words: str = "") -> None:
        from chapterverse.fields import read_request
        from chapterverse.models import FeedbackKept, FeedbackRequest, Reason
        from chapterverse.terminal import show_note

        turn = self._turn or self._background.run(self._stored_turn)
        if turn is None:
            show_note("There is no answer to rate yet.")
            return
        first, _, rest = words.partition(" ")
        has_reason = rating == "down" and first in get_args(Reason)
        reason, comment = (first, rest) if has_reason else (None, words)
        given = read_request(FeedbackRequest, turn_id=turn, rating=rating, reason=reason, comment=comment)

        async def keep(services: "Services") -> FeedbackKept | None:
            return await services.conversations.rate(given)

        kept = self._background.run(keep)
        show_note("Thank you, it is stored with the answer." if kept else "The answer is no longer stored.")

    async def _stored_turn(self, services: "Services") -> str | None:
        """Return the id of the last stored answer of a continued session, or None."""
        turns = await services.conversations.recent(self._session, messages=2)
        return turns[-1].turn_id if turns else None

    def _show_sources(self) -> None:
        from chapterverse.terminal import show_note
        from chapterverse.terminal.answers import show_sources

        if self._sources is None:
            self._sources = self._background.run(self._stored_sources)
        if self._sources:
            show_sources(self._sources)
        else:
            show_note("The last answer has no sources.")

    async def _stored_sources(self, services: "Services") -> "list[SourceCitation]":
        """Return the sources of the last stored turn of a continued session."""
        from pydantic import TypeAdapter

        from chapterverse.models import SelectedTextCitation, SourceCitation

        turns = await services.conversations.recent(self._session, messages=2)
        kept = turns[-1].sources if turns else ()
        kinds: TypeAdapter[list[SelectedTextCitation | SourceCitation]] = TypeAdapter(
            list[SelectedTextCitation | SourceCitation]
        )
        return list(kinds.validate_python(kept))

    def _show_history(self, *, with_searches: bool) -> None:
        from chapterverse.terminal import show_note
        from chapterverse.terminal.answers import show_thread

        async def read(services: "Services") -> "ConversationThread | None":
            return await services.conversations.thread(self._session)

        thread = self._background.run(read)
        if thread is None:
            show_note("This session has no turns yet.")
        else:
            show_thread(thread, with_searches=with_searches)


class _Quit(Exception):
    """The user quits."""


async def _warm_up(services: "Services") -> None:
    """Open the engines while the user types the first question. Failures are reported when the engines are used."""

    async def open_engine(probe: Callable[[], Awaitable[str | None]]) -> None:
        with contextlib.suppress(ChapterverseError):
            await probe()

    await asyncio.gather(
        open_engine(services.index.probe), open_engine(services.embedder.probe), start_conversations(services)
    )
