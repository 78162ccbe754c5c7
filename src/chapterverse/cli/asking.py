"""The commands `ask`, `search` and `suggestions`, and functions that `ask` shares with `chat`."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chapterverse.cli.command import (
    REFUSED,
    command,
    edition_filters,
    edition_options,
    search_fields,
    search_options,
)
from chapterverse.errors import ChapterverseError, ValidationFailed

if TYPE_CHECKING:
    from chapterverse.ingestion.document import Format
    from chapterverse.models import ChatRequest, ChatResponse, Event
    from chapterverse.services import Services


@click.command(epilog=f"Exit code: 0 answered, {REFUSED} refused, otherwise the code of an error.")
@click.argument("question")
@click.option(
    "--select",
    "selection",
    metavar="FILE",
    help="Ask only about the text of FILE (text, PDF, EPUB, docx); - is stdin.",
)
@search_options
@click.option("--session", metavar="ID", help="Continue the conversation with this id.")
@click.option("--json", "as_json", is_flag=True, help="Print the ChatResponse as JSON.")
@click.option(
    "--proof",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Save the answer with its quotes and hashes of their pages, for `chapterverse verify`.",
)
@command
async def ask(
    question: str, selection: str | None, session: str | None, as_json: bool, proof: Path | None, **options: Any
) -> int:
    """Ask the book, or a selection, one QUESTION.

    Sentences are shown as soon as they have been checked, each with the number of its source. If the book does not
    contain the answer, the answer is a refusal.

    \b
      chapterverse ask "How do nodes find each other?"
      chapterverse ask "And across networks?" --session 0b9f4d3e-6a53-4d0c-9d53-2f1a7f1f3a10
      chapterverse ask "What does it depend on?" --select notes.md
      git show HEAD | chapterverse ask "What does it change?" --select -
      chapterverse ask "What is a topic?" -f module=ros2 --json | jq .sources
      chapterverse ask "What is a topic?" --proof answer.json && chapterverse verify answer.json
    """
    from chapterverse.fields import read_request
    from chapterverse.models import ChatRequest
    from chapterverse.settings import Settings
    from chapterverse.terminal.answers import AnswerView

    if selection and proof:
        raise ValidationFailed(
            "--proof is for answers from the book; a selection is not stored and cannot be verified later."
        )
    selected = await read_selection(selection) if selection else None
    request = read_request(
        ChatRequest, query=question, session_id=session, **selection_fields(selected), **search_fields(**options)
    )
    settings = Settings.load()

    from chapterverse.wiring import open_services

    async with open_services(settings) as services, _database_starting(services):
        if as_json:
            answer = await answered(request, services, lambda event: None, resumes=bool(session))
            click.echo(answer.model_dump_json(indent=2))
        else:
            with AnswerView(with_session=True) as view:
                answer = await answered(request, services, view, resumes=bool(session))
        if proof is not None:
            await _save_proof(request.query, answer, services, proof)
    return REFUSED if answer.status == "refused" else 0


async def _save_proof(question: str, answer: "ChatResponse", services: "Services", path: Path) -> None:
    from chapterverse.evaluation.files import save_model
    from chapterverse.evaluation.proofs import make_proof
    from chapterverse.terminal import show_note

    save_model(await make_proof(question, answer, services.index), path, "--proof")
    show_note(f"proof: {path}")


async def answered(
    request: "ChatRequest", services: "Services", show: "Callable[[Event], None]", *, resumes: bool
) -> "ChatResponse":
    """Answer a request and pass each event to `show`. `resumes`: warn if the session has no earlier turns."""
    from chapterverse import answering
    from chapterverse.terminal import show_warning

    prepared = await answering.prepare(request, services)
    if resumes and prepared.remembered and not prepared.turns:
        show_warning(f"session {prepared.session_id} has no earlier turns; it begins here.")

    async def shown() -> "AsyncGenerator[Event, None]":
        async with contextlib.aclosing(answering.stream(prepared, services)) as events:
            async for event in events:
                show(event)
                yield event

    async with contextlib.aclosing(shown()) as events:
        answer = await answering.fold(events)
    if not answer.metadata.stored:
        show_warning("this turn could not be stored; the conversation will not remember it. See: chapterverse doctor")
    return answer


@contextlib.asynccontextmanager
async def _database_starting(services: "Services") -> AsyncGenerator[None, None]:
    """Start the embedded Postgres in the background. If it fails, the answer reports that it was not stored."""
    starting = asyncio.create_task(start_conversations(services))
    try:
        yield
    finally:
        starting.cancel()
        await asyncio.wait([starting])


async def start_conversations(services: "Services") -> None:
    """Start the database if there is a book. Without one the folder may be the wrong one, and no home must be created
    there. A failure is reported when the database is used."""
    with contextlib.suppress(ChapterverseError):
        await services.index.manifest()
        await services.conversations.probe()


async def read_selection(name: str) -> str:
    """Return the text of a file or of stdin, unchanged, because the offsets of citations refer to it. A PDF, EPUB or
    Word file is read as `ingest` reads it."""
    from chapterverse.fields import MAX_SELECTION_CHARS
    from chapterverse.ingestion.formats import PACKED, format_of_file

    try:
        content = await asyncio.to_thread(_content, name)
        format_ = format_of_file(name)
        text = await _text_in(name, format_, content) if format_ in PACKED else content.decode("utf-8")
    except OSError as failure:
        raise ValidationFailed(f"{name} cannot be read: {failure.strerror}") from None
    except UnicodeDecodeError:
        raise ValidationFailed(f"{name} is not UTF-8 text.") from None
    if len(text) > MAX_SELECTION_CHARS:
        raise ValidationFailed(
            f"selected_text: {name} has {len(text):,} characters; select at most {MAX_SELECTION_CHARS:,}, "
            "or ingest it and ask the book."
        )
    if not text.strip():
        raise ValidationFailed(f"selected_text: {name} is empty; select some text.")
    return text


def _content(name: str) -> bytes:
    return sys.stdin.buffer.read() if name == "-" else file_named(name).read_bytes()


def file_named(name: str) -> Path:
    """Return the path of a file; `~` alone is the folder of the user, and other names may begin with it."""
    return Path(name).expanduser() if name.startswith("~/") else Path(name)


async def _text_in(name: str, format_: "Format", content: bytes) -> str:
    """Return the text of a PDF, EPUB or Word file, read as `ingest` reads it."""
    from chapterverse.embeddings.wordpiece import WINDOW
    from chapterverse.ingestion.document import Document, NothingToRead, Unreadable
    from chapterverse.ingestion.worker_limits import ReadLimits
    from chapterverse.ingestion.workers import DocumentReader

    reader = DocumentReader(ReadLimits())
    try:
        pages = await reader.read(Document(name, Path(name).name, "", format_, content), WINDOW)
    except (Unreadable, NothingToRead) as failure:
        raise ValidationFailed(f"{name} cannot be read: {failure}") from None
    finally:
        await reader.close()
    return "\n\n".join(page.text for page, _ in pages)


def selection_fields(selected: str | None) -> dict[str, Any]:
    """Return the request fields for a selection; none if nothing is selected."""
    return {} if selected is None else {"mode": "selected_text", "selected_text": selected}


@click.command()
@click.argument("query")
@search_options
@click.option("--json", "as_json", is_flag=True, help="Print the SearchResult as JSON.")
@command
async def search(query: str, as_json: bool, **options: Any) -> int:
    """Find the passages of the book that fit QUERY best. No language model is used.

    \b
      chapterverse search "How do nodes find each other?"
      chapterverse search "quality of service" -k 3 -f module=ros2 --json
      chapterverse search "default port" --book guide --version 1.0
    """
    from chapterverse.fields import read_request
    from chapterverse.models import RetrievalRequest
    from chapterverse.retrieval import find_passages
    from chapterverse.settings import Settings
    from chapterverse.terminal.answers import show_passages
    from chapterverse.wiring import open_engines

    request = read_request(RetrievalRequest, query=query, **search_fields(**options))
    async with open_engines(Settings.load()) as engines:
        found = await find_passages(request, engines.embedder, engines.index)
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        show_passages(found)
    return 0


@click.command()
@click.option("-n", "--limit", type=click.IntRange(1, 50), help="Maximum number; default: all.")
@click.option("--fresh", is_flag=True, help="Make them again, even if the book has not changed.")
@edition_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@command
async def suggestions(
    limit: int | None, fresh: bool, as_json: bool, book: tuple[str, ...], version: tuple[str, ...]
) -> int:
    """List questions that the book answers.

    They are made from the book's headings and definitions and from questions of several readers, and each was tested. A
    server makes them in the background; this command makes them if there are none for the current book. SUGGESTIONS is
    the number for each book and version. With a language model each test calls the model.

    \b
      chapterverse suggestions
      chapterverse ask "$(chapterverse suggestions -n 1)"
    """
    from chapterverse.evaluation.suggestion_store import Shelf, refresh, up_to_date
    from chapterverse.retrieval import editions_in
    from chapterverse.settings import Settings
    from chapterverse.terminal import out, printable, show_note
    from chapterverse.wiring import open_services

    settings = Settings.load()
    if not settings.suggestions:
        raise ValidationFailed("SUGGESTIONS is 0: no questions are suggested.")
    shelf = Shelf(settings.chapterverse_home)
    async with open_services(settings) as services:
        kept = None if fresh else await up_to_date(shelf, services)
        if kept is None:
            show_note("Testing questions …")
            kept = await refresh(shelf, services)
        editions = {
            (edition.book, edition.version)
            for edition in await editions_in(edition_filters(book, version), services.index)
        }
    shown = [item for item in kept.suggestions if (item.book, item.version) in editions][:limit]
    if as_json:
        click.echo(json.dumps({"suggestions": [item.model_dump() for item in shown]}, indent=2, ensure_ascii=False))
    else:
        for item in shown:
            out.print(printable(item.question))
    return 0
