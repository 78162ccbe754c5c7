"""The commands `sessions` (list, show and delete stored conversations) and `feedback` (rate an answer).

They open only the database, not the engines of the book.
"""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import click

from chapterverse.cli.command import command
from chapterverse.errors import NotFound

if TYPE_CHECKING:
    from chapterverse.conversations.store import Conversations
    from chapterverse.settings import Settings

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(invoke_without_command=True)
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many to list.")
@_json
@click.pass_context
def sessions(context: click.Context, limit: int, as_json: bool) -> None:
    """List the stored conversations: id, last use, turns, topic.

    \b
      chapterverse sessions
      chapterverse sessions show 0b9f4d3e-6a53-4d0c-9d53-2f1a7f1f3a10
      chapterverse sessions delete 0b9f4d3e-6a53-4d0c-9d53-2f1a7f1f3a10
      chapterverse chat --session 0b9f4d3e-6a53-4d0c-9d53-2f1a7f1f3a10
    """
    if context.invoked_subcommand is None:
        _list(limit, as_json)


@command
async def _list(limit: int, as_json: bool) -> int:
    from pydantic import TypeAdapter

    from chapterverse.conversations.turns import SessionSummary
    from chapterverse.terminal.answers import show_sessions

    async with stored_conversations() as conversations:
        found = await conversations.sessions(limit) if conversations else []
    if as_json:
        click.echo(TypeAdapter(list[SessionSummary]).dump_json(found, indent=2).decode())
    else:
        show_sessions(found)
    return 0


@sessions.command()
@click.argument("session", metavar="ID")
@click.option("--searches", is_flag=True, help="Show the searches, too; --json always has them.")
@_json
@command
async def show(session: str, searches: bool, as_json: bool) -> int:
    """Show a conversation: its last 50 messages."""
    from chapterverse.terminal import show_note
    from chapterverse.terminal.answers import moment, show_thread

    async with stored_conversations() as conversations:
        thread = await conversations.thread(session) if conversations else None
    if thread is None:
        raise _unknown(session)
    if as_json:
        click.echo(thread.model_dump_json(indent=2))
        return 0
    topic = f" · {thread.topic_summary}" if thread.topic_summary else ""
    show_note(
        f"{thread.turn_count} turn{'s' * (thread.turn_count != 1)} · last used {moment(thread.updated_at)}{topic}\n"
    )
    show_thread(thread, with_searches=searches)
    return 0


@sessions.command()
@click.argument("session", metavar="ID")
@_json
@command
async def delete(session: str, as_json: bool) -> int:
    """Delete a conversation with all its messages permanently."""
    from chapterverse.terminal import show_note

    async with stored_conversations() as conversations:
        if conversations is None or not await conversations.delete(session):
            raise _unknown(session)
    if as_json:
        click.echo(json.dumps({"deleted": session}))
    else:
        show_note(f"Deleted session {session}.")
    return 0


@click.command()
@click.argument("turn", metavar="TURN")
@click.argument("rating", metavar="up|down")
@click.option("--reason", help="wrong, incomplete, off_topic, unclear, outdated or other; only with down.")
@click.option("--comment", default="", help="In your own words, at most 1,000 characters.")
@_json
@command
async def feedback(turn: str, rating: str, reason: str | None, comment: str, as_json: bool) -> int:
    """Rate an answer up or down. TURN is its id, as `ask` shows it; `chat` has /up and /down instead.

    The rating is stored with the answer and deleted with it. Rating again replaces it.

    \b
      chapterverse feedback 6f1d1c1e-0d9a-4a58-8a52-0a1f6b3f5c77 up
      chapterverse feedback 6f1d1c1e-0d9a-4a58-8a52-0a1f6b3f5c77 down --reason wrong --comment "It is 42."
    """
    from chapterverse.fields import read_request
    from chapterverse.models import FeedbackRequest
    from chapterverse.terminal import show_note

    given = read_request(FeedbackRequest, turn_id=turn, rating=rating, reason=reason, comment=comment)
    async with stored_conversations() as conversations:
        kept = await conversations.rate(given) if conversations else None
    if kept is None:
        raise NotFound(f"There is no turn {turn}. `chapterverse sessions show ID --json` has those of a session.")
    if as_json:
        click.echo(kept.model_dump_json(indent=2))
    else:
        show_note(f"Stored: {kept.rating}{f', {kept.reason}' if kept.reason else ''}.")
    return 0


@asynccontextmanager
async def stored_conversations() -> "AsyncIterator[Conversations | None]":
    """Yield the store of conversations, or None if no database exists; then a note is printed."""
    from chapterverse.settings import Settings
    from chapterverse.wiring import choose_conversations

    settings = Settings.load()
    if not has_database(settings):
        yield None
        return
    async with AsyncExitStack() as closing:
        conversations, _, _ = choose_conversations(settings, closing)
        closing.push_async_callback(conversations.close)
        yield conversations


def has_database(settings: "Settings") -> bool:
    """Whether a database exists. If not, print where it was expected; none is created."""
    from chapterverse.terminal import show_note

    place = settings.chapterverse_home / "postgres"
    if settings.database_url is None and not place.exists():
        show_note(f"There is no database in {place}; set CHAPTERVERSE_HOME or DATABASE_URL for another one.")
        return False
    return True


def _unknown(session: str) -> NotFound:
    return NotFound(f"There is no session {session}. `chapterverse sessions` lists them.")
