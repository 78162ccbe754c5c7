"""Keeps the conversations tidy while a server runs: archives idle threads, purges old turns.

The first run is at once, which also starts an embedded database before the first question needs it. It never delays a
request, a start or a stop: a failure is logged once, and the work is tried again later. The database makes sure that
only one of several workers does it.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, Final

from chapterverse.conversations.store import Conversations
from chapterverse.errors import ConversationsUnavailable

log = logging.getLogger(__name__)

EVERY_SECONDS: Final = 600.0  # half as much more or less by chance, so that workers do not do it together
IDLE: Final = timedelta(hours=1)  # then a thread is archived (SPEC 6)


@asynccontextmanager
async def keeping_house(
    conversations: Conversations, retention: timedelta, idle: timedelta = IDLE, every: float = EVERY_SECONDS
) -> AsyncIterator[None]:
    """Tidy up in the background, now and then again, until the end."""
    async with in_background(_tidy_again_and_again(conversations, retention, idle, every)):
        yield


@asynccontextmanager
async def in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do it beside what happens meanwhile, and end it then."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _tidy_again_and_again(
    conversations: Conversations, retention: timedelta, idle: timedelta, every: float
) -> None:
    failing = False
    while True:
        try:
            archived = await conversations.archive_idle(idle)
            purged = await conversations.purge(retention)
        except ConversationsUnavailable as failure:
            if not failing:
                log.warning("conversations are not tidied up: %s Trying again now and then.", failure.message)
            failing = True
        else:
            if archived or purged or failing:
                log.info("conversations tidied up: %d archived, %d old turns deleted", archived, purged)
            failing = False
        await asyncio.sleep(every * random.uniform(0.5, 1.5))  # noqa: S311 - spreads work, no secret
